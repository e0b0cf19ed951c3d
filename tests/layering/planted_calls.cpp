// What a library must not do, for the test that looks for it.
#include <cstdio>
#include <cstdlib>
#include <iostream>

void planted_print(int value) { std::printf("%d\n", value); }
void planted_cout(int value) { std::cout << value; }
void planted_cerr(int value) { std::cerr << value; }
void planted_stderr(int value) { std::fprintf(stderr, "%d\n", value); }
void planted_puts() { std::puts("planted"); }
void planted_abort() { std::abort(); }
void planted_exit() { std::exit(1); }

// One function in two objects: also in planted_again.cpp. A linker takes the one of them that it comes to first.
int planted_twice() { return 1; }
