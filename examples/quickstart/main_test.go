package main

// The program is its own example.
func Example() {
	main()
	// Output:
	// "Ann" <nil>
	// "Ann" <nil>
	// "Anna" <nil>
	// "" ringcache: load entry: key is absent
}
