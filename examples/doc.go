// Package examples holds jobs that run as they stand, each with its data and a README, and the tests that run them with
// the real program: the output is compared with an oracle computed another way, and the program is killed at every point
// of its protocol on the way. It holds no code that the host needs.
package examples
