// Runs the tests of http-tests/cache-tests, which lie beside this file, against the cache at the
// URL that is the argument, and prints a summary of its results and of those of other caches.
//
// A test is counted as passed or not by itself, whether or not the tests it depends on pass. Those
// for browsers are left out. A test that does not pass is run again by itself, up to two times: all
// of them depend on time.
import fs from 'node:fs'

import { runTests } from './test-engine/client/runner.mjs'
import { testResults } from './test-engine/client/test.mjs'
import caches from './results/index.mjs'
import suites from './tests/index.mjs'

const base = process.argv[2]
const tests = suites.flatMap(suite => suite.tests).filter(test => !test.browser_only)
const run = some => runTests([{ tests: some }], false, base)
await run(tests)
const retried = tests.filter(test => testResults[test.id] !== true && !isCheck(test))
  .map(test => test.id)
for (let tries = 0; tries < 2; tries++) {
  const again = tests.filter(test => testResults[test.id] !== true && !isCheck(test))
  again.forEach(test => delete testResults[test.id])
  await run(again)
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

const others = caches.filter(cache => fs.existsSync(`results/${cache.file}`)).map(cache =>
  summary(cache.name, cache.version, JSON.parse(fs.readFileSync(`results/${cache.file}`))))
const failed = tests.filter(test => !isCheck(test) && testResults[test.id] !== true)
console.log(JSON.stringify({
  required: tests.filter(isRequired).length,
  optimal: tests.filter(test => test.kind === 'optimal').length,
  retried: retried.filter(id => testResults[id] === true),
  caches: [summary('ringmiddleware', '', testResults), ...others],
  failed: failed.map(test => ({
    id: test.id, required: isRequired(test), message: String(testResults[test.id]?.[1])
  }))
}, null, 2))
