// Package files publishes a sink's rows as files in a directory, exactly once, with the manifest of Spark's file sink
// (_spark_metadata), so that Spark, and anyone who reads the manifest, sees whole batches only.
//
// One target is one sink and one directory:
//
//	<out>/[col=value/..]part-<number>-<8 of query>-<batch>-<16 of sha256>.c000.<ext>   data, linked, never replaced
//	<out>/_spark_metadata/<N>, <N>.compact     the manifest of batch N; at 9, 19, .. a compaction with all entries
//	<out>/_spark_metadata/_wasmill.<N>.<digest>   a second name of the same file: the batch digest that N carries
//	<out>/_spark_metadata/_wasmill.json        whose directory this is
//	<out>/_wasmill/<N>-<attempt>/              staged parts; also the lock and lists of data that retention dropped
//
// A manifest file is written and synced, linked to the name with the digest and then to the name that Spark reads, so a
// batch becomes visible in one step and its digest is never in doubt: the entries have exactly Spark's keys. If a crash
// keeps N but loses the other name, N counts as not finished; publishing it again compares its entries, which name the
// content, with what the decision says was staged.
//
// Names and formats follow Spark 4 (CompactibleFileStreamLog, FileStreamSinkLog, ExternalCatalogUtils). The package knows
// no other sink, decides nothing about batches, and touches no file but through durable.Files.
package files
