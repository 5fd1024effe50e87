package main

// The program is its own example.
func Example() {
	main()
	// Output:
	// hello true
	// user:7 from the database <nil>
}
