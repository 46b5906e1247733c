// Package determinism holds the tests that a module gives the same bits on every engine and every processor. It has no
// code besides them, and nothing may import it.
//
// Each test runs modules on the compiler and on the interpreter and compares both with digests in testdata, which were
// written on amd64 (-update writes them again). So the same tests, built for another processor and run there, compare the
// processors: .ci/arm64 does that under qemu. -test.short takes a part of the longer ones.
//
// What differs without the rewriter, and so must be seen to differ here: the bits of NaNs that arithmetic makes, and
// remainders on arm64 when registers are short.
package determinism
