// Package cli is the command line: one file a verb, each a thin layer over the host.
//
// Data goes to stdout, everything else to stderr. Exit codes are 0 ok, 1 failure, 2 wrong usage and 3 findings: the
// command worked and found something to mend. What a command needs of the machine comes in through Env, so that tests run
// it in the same process.
//
// The package holds no logic that a server or a test would want too; that belongs to the host.
package cli
