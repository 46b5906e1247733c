package delta

import "github.com/parquet-go/parquet-go"

// The columns of a checkpoint as they are read. Columns that are not named here are skipped, stats_parsed among them: stats
// says the same.

type leafColumn struct {
	path []string
	set  func(a *Action, v parquet.Value)
}

type mapColumn struct {
	path []string
	set  func(a *Action, m map[string]*string)
}

type listColumn struct {
	path []string
	set  func(a *Action, texts []string)
}

// secondKind are columns that have a value in checkpoints of the kind v2 alone, although others may have them too.
var secondKind = [][]string{{"checkpointMetadata", "version"}, {"sidecar", "path"}}

func (a *Action) txn() *Txn {
	if a.Txn == nil {
		a.Txn = &Txn{}
	}
	return a.Txn
}

func (a *Action) add() *Add {
	if a.Add == nil {
		a.Add = &Add{Size: -1}
	}
	return a.Add
}

func (a *Action) remove() *Remove {
	if a.Remove == nil {
		a.Remove = &Remove{}
	}
	return a.Remove
}

func (a *Action) metadata() *Metadata {
	if a.Metadata == nil {
		a.Metadata = &Metadata{}
	}
	return a.Metadata
}

func (a *Action) protocol() *Protocol {
	if a.Protocol == nil {
		a.Protocol = &Protocol{}
	}
	return a.Protocol
}

func (a *Action) domain() *DomainMetadata {
	if a.Domain == nil {
		a.Domain = &DomainMetadata{}
	}
	return a.Domain
}

func vector(d **DeletionVector) *DeletionVector {
	if *d == nil {
		*d = &DeletionVector{}
	}
	return *d
}

var checkpointLeaves = append(append([]leafColumn{
	{[]string{"txn", "appId"}, func(a *Action, v parquet.Value) { a.txn().AppID = text(v) }},
	{[]string{"txn", "version"}, func(a *Action, v parquet.Value) { a.txn().Version = integer(v) }},
	{[]string{"txn", "lastUpdated"}, func(a *Action, v parquet.Value) { a.txn().LastUpdated = integerPointer(v) }},
	{[]string{"add", "path"}, func(a *Action, v parquet.Value) { a.add().Path = text(v) }},
	{[]string{"add", "size"}, func(a *Action, v parquet.Value) { a.add().Size = integer(v) }},
	{[]string{"add", "modificationTime"}, func(a *Action, v parquet.Value) { a.add().ModificationTime = integer(v) }},
	{[]string{"add", "dataChange"}, func(a *Action, v parquet.Value) { a.add().DataChange = *boolPointer(v) }},
	{[]string{"add", "stats"}, func(a *Action, v parquet.Value) { a.add().Stats = text(v) }},
	{[]string{"add", "baseRowId"}, func(a *Action, v parquet.Value) { a.add().BaseRowID = integerPointer(v) }},
	{[]string{"add", "defaultRowCommitVersion"}, func(a *Action, v parquet.Value) { a.add().DefaultRowCommitVersion = integerPointer(v) }},
	{[]string{"add", "clusteringProvider"}, func(a *Action, v parquet.Value) { a.add().ClusteringProvider = text(v) }},
	{[]string{"remove", "path"}, func(a *Action, v parquet.Value) { a.remove().Path = text(v) }},
	{[]string{"remove", "deletionTimestamp"}, func(a *Action, v parquet.Value) { a.remove().DeletionTimestamp = integerPointer(v) }},
	{[]string{"remove", "dataChange"}, func(a *Action, v parquet.Value) { a.remove().DataChange = *boolPointer(v) }},
	{[]string{"remove", "extendedFileMetadata"}, func(a *Action, v parquet.Value) { a.remove().ExtendedFileMetadata = boolPointer(v) }},
	{[]string{"remove", "size"}, func(a *Action, v parquet.Value) { a.remove().Size = integerPointer(v) }},
	{[]string{"remove", "baseRowId"}, func(a *Action, v parquet.Value) { a.remove().BaseRowID = integerPointer(v) }},
	{[]string{"remove", "defaultRowCommitVersion"}, func(a *Action, v parquet.Value) { a.remove().DefaultRowCommitVersion = integerPointer(v) }},
	{[]string{"metaData", "id"}, func(a *Action, v parquet.Value) { a.metadata().ID = text(v) }},
	{[]string{"metaData", "name"}, func(a *Action, v parquet.Value) { a.metadata().Name = text(v) }},
	{[]string{"metaData", "description"}, func(a *Action, v parquet.Value) { a.metadata().Description = text(v) }},
	{[]string{"metaData", "format", "provider"}, func(a *Action, v parquet.Value) { a.metadata().Format.Provider = text(v) }},
	{[]string{"metaData", "schemaString"}, func(a *Action, v parquet.Value) { a.metadata().SchemaString = text(v) }},
	{[]string{"metaData", "createdTime"}, func(a *Action, v parquet.Value) { a.metadata().CreatedTime = integerPointer(v) }},
	{[]string{"protocol", "minReaderVersion"}, func(a *Action, v parquet.Value) { a.protocol().MinReader = small(v) }},
	{[]string{"protocol", "minWriterVersion"}, func(a *Action, v parquet.Value) { a.protocol().MinWriter = small(v) }},
	{[]string{"domainMetadata", "domain"}, func(a *Action, v parquet.Value) { a.domain().Domain = text(v) }},
	{[]string{"domainMetadata", "configuration"}, func(a *Action, v parquet.Value) { a.domain().Configuration = text(v) }},
	{[]string{"domainMetadata", "removed"}, func(a *Action, v parquet.Value) { a.domain().Removed = *boolPointer(v) }},
},
	vectorColumns("add", func(a *Action) *DeletionVector { return vector(&a.add().DeletionVector) })...),
	vectorColumns("remove", func(a *Action) *DeletionVector { return vector(&a.remove().DeletionVector) })...)

func vectorColumns(of string, dv func(a *Action) *DeletionVector) []leafColumn {
	path := func(name string) []string { return []string{of, "deletionVector", name} }
	return []leafColumn{
		{path("storageType"), func(a *Action, v parquet.Value) { dv(a).StorageType = text(v) }},
		{path("pathOrInlineDv"), func(a *Action, v parquet.Value) { dv(a).PathOrInlineDV = text(v) }},
		{path("offset"), func(a *Action, v parquet.Value) {
			n := small(v)
			dv(a).Offset = &n
		}},
		{path("sizeInBytes"), func(a *Action, v parquet.Value) { dv(a).SizeInBytes = small(v) }},
		{path("cardinality"), func(a *Action, v parquet.Value) { dv(a).Cardinality = integer(v) }},
		{path("maxRowIndex"), func(a *Action, v parquet.Value) { dv(a).MaxRowIndex = integerPointer(v) }},
	}
}

var checkpointMaps = []mapColumn{
	{[]string{"add", "partitionValues"}, func(a *Action, m map[string]*string) { a.add().PartitionValues = m }},
	{[]string{"add", "tags"}, func(a *Action, m map[string]*string) { a.add().Tags = m }},
	{[]string{"remove", "partitionValues"}, func(a *Action, m map[string]*string) { a.remove().PartitionValues = m }},
	{[]string{"remove", "tags"}, func(a *Action, m map[string]*string) { a.remove().Tags = m }},
	{[]string{"metaData", "format", "options"}, func(a *Action, m map[string]*string) { a.metadata().Format.Options = plain(m) }},
	{[]string{"metaData", "configuration"}, func(a *Action, m map[string]*string) { a.metadata().Configuration = plain(m) }},
}

var checkpointLists = []listColumn{
	{[]string{"metaData", "partitionColumns"}, func(a *Action, texts []string) { a.metadata().PartitionColumns = texts }},
	{[]string{"protocol", "readerFeatures"}, func(a *Action, texts []string) { a.protocol().ReaderFeatures = texts }},
	{[]string{"protocol", "writerFeatures"}, func(a *Action, texts []string) { a.protocol().WriterFeatures = texts }},
}

// plain makes empty texts of nulls.
func plain(m map[string]*string) map[string]string {
	out := make(map[string]string, len(m))
	for k, v := range m {
		if v != nil {
			out[k] = *v
		} else {
			out[k] = ""
		}
	}
	return out
}
