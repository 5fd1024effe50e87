// With a file of assembly, the compiler accepts functions without a body.
