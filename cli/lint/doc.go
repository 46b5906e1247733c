// Package lint holds the rules of the code base as tests: which package may import which, how long a file may be, that
// every exported name is documented, and which calls are allowed where. It has no code of its own and nothing imports it.
package lint
