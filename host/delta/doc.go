// Package delta reads and writes the log of a Delta Lake table: entries, snapshots, checkpoints, and what the protocol says
// about schemas, partition values, paths and statistics.
//
// The format is that of the Delta transaction log protocol (PROTOCOL.md of delta-io/delta), reader versions 1 to 3 and writer
// versions 1 to 7 as far as CheckRead and CheckWrite let a table pass. A table with anything else is refused by name: to
// write into a table whose rules one does not know corrupts it for everybody.
//
// The package knows no sink, no source and no batch. It opens no data file; it decides neither what is written nor whether a
// lost race is tried again. An entry, once there, is never changed, so a Snapshot is good for ever. Nothing of what others
// have written is trusted: sizes are bounded, and what is torn, missing or contradicts itself is an error that names the
// file and the line.
package delta
