// Package badger keeps applied state in Badger v4, the log-structured store that lives in one folder of the checkpoint.
//
// What Badger is trusted with is little. Its tables (*.sst) and its MANIFEST are read and checked, byte for byte, before
// it opens them, because it ends the process on some kinds of damage and quietly reads past others. Its write-ahead logs
// are not used at all: a damaged one is cut in the middle without a word. They are removed on opening, and the batches
// that stood in them are applied again from the changelogs, which are durable and checked. Hence Applied can be lower
// after a crash than before it, and Durable says below which batch nothing can be lost.
//
// Tables are written one after the other in the order of what was applied, so that those that survive always hold all
// writes up to some point. A batch is written with its marker last, at version batch+1 (managed mode); writing it again
// from the same changelog changes nothing. A folder is never rewound: that takes a new one.
//
// Every value carries a checksum over key, version and value, so that damage that happens while the store is open is an
// error and never an answer.
//
// It is made for little memory on small machines. Pages of tables are given back to the page cache, also those of tables that
// a compaction is making (trim_linux.go).
//
// The package must not decide what is applied or when, nor know what a key means.
package badger
