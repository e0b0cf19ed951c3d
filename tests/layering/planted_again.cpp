// The other definition of planted_twice(), for the test that looks for two of one name.
int planted_twice() { return 2; }
