// Runs the tests of http-tests/cache-tests in the folder that is the first argument against the
// cache at the URL that is the second, and prints a summary of its results and of those of other
// caches.
//
// A test is counted as passed or not by itself, whether or not the tests it depends on pass. Those
// for browsers are left out. A test that does not pass is run again by itself, up to two times: all
// of them depend on time.
import fs from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { pathToFileURL } from 'node:url'

const [dir, base] = process.argv.slice(2)
const load = file => import(pathToFileURL(path.resolve(dir, file)))
// Where the version in npm and the repository differ: the folder of the client, its name for a
// function, and whether it is to be given fetch. That of Node adds a Cache-Control to requests.
const engine = fs.existsSync(path.join(dir, 'test-engine')) ? 'test-engine/' : ''
const config = await load(engine + 'client/config.mjs')
const { makeTest, makeCacheTest, testResults } = await load(engine + 'client/test.mjs')
const make = makeTest ?? makeCacheTest
config.setBaseUrl(base)
config.setUseBrowserCache(false)
if (!makeTest) config.setFetch(createRequire(path.resolve(dir, 'package.json'))('node-fetch'))

const suites = (await load('tests/index.mjs')).default
const tests = suites.flatMap(suite => suite.tests).filter(test => !test.browser_only)
await run(tests)
const retried = missed().map(test => test.id)
for (let tries = 0; tries < 2; tries++) {
  const again = missed()
  again.forEach(test => delete testResults[test.id])
  await run(again)
}

// run runs 25 tests at a time. The client changes a test that it runs, so it gets a copy.
async function run (some) {
  for (let i = 0; i < some.length; i += 25) {
    await Promise.all(some.slice(i, i + 25).map(test => make(structuredClone(test))))
  }
}

// missed returns the tests that did not pass.
function missed () {
  return tests.filter(test => testResults[test.id] !== true && !isCheck(test))
}

// isCheck reports whether a test only shows what a cache does.
function isCheck (test) {
  return test.kind === 'check'
}

function isRequired (test) {
  return !isCheck(test) && test.kind !== 'optimal'
}

// summary counts the tests that passed, and those that failed because the cache has served a
// response that it must not serve.
function summary (name, version, results) {
  const sum = { name, version, required: 0, optimal: 0, served: 0 }
  for (const test of tests) {
    const result = results[test.id]
    if (isCheck(test)) continue
    if (result === true) {
      sum[isRequired(test) ? 'required' : 'optimal']++
    } else if (isRequired(test) && / comes from cache/.test(result?.[1])) {
      sum.served++
    }
  }
  return sum
}

// others returns the summaries of the other reverse proxies whose results are there.
async function others () {
  const caches = (await load('results/index.mjs')).default
  return caches.filter(cache => cache.type === 'rev-proxy').map(cache => {
    const results = fs.readFileSync(path.join(dir, 'results', cache.file))
    return summary(cache.name, cache.version, JSON.parse(results))
  })
}

console.log(JSON.stringify({
  required: tests.filter(isRequired).length,
  optimal: tests.filter(test => test.kind === 'optimal').length,
  retried: retried.filter(id => testResults[id] === true),
  caches: [summary('ringmiddleware', '', testResults), ...await others()],
  failed: missed().map(test => ({
    id: test.id, required: isRequired(test), message: String(testResults[test.id]?.[1])
  }))
}, null, 2))
