package ringcache

// RaceEnabled tells tests from outside what raceEnabled tells those from within.
const RaceEnabled = raceEnabled

// CollectClosed is to be called after a cache was closed.
func CollectClosed() { collectClosed() }
