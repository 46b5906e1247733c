//go:build 386 || arm || mips || mipsle

package main

// The undefined name is the message: a build for a 32-bit platform ends here, in words, before it compiles anything else.
const _ = wasmill_needs_a_64_bit_platform_such_as_linux_amd64_or_linux_arm64
