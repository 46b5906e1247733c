// Package spectest runs the core test suite of the WebAssembly specification through the decoder and the rewriter: a module
// that was rewritten must give the answers that the specification asks for, and what the specification calls invalid or
// malformed must stay so.
//
// It holds tests alone. The suite, in the form that wast2json makes of it, lies inside the module of the engine in the module
// cache of every machine that built this program; nothing of it is copied here. Nothing may import this package.
package spectest
