package delta

// The schema of a checkpoint as Spark writes it for a table without deletion vectors of its own and parsed statistics: every
// column is optional. Rows are shredded in the order of these fields.

type checkpointRow struct {
	Txn      *checkpointTxn      `parquet:"txn,optional"`
	Add      *checkpointAdd      `parquet:"add,optional"`
	Remove   *checkpointRemove   `parquet:"remove,optional"`
	Metadata *checkpointMetadata `parquet:"metaData,optional"`
	Protocol *checkpointProtocol `parquet:"protocol,optional"`
	Domain   *checkpointDomain   `parquet:"domainMetadata,optional"`
}

type checkpointTxn struct {
	AppID       *string `parquet:"appId,optional"`
	Version     *int64  `parquet:"version,optional"`
	LastUpdated *int64  `parquet:"lastUpdated,optional"`
}

type checkpointAdd struct {
	Path                    *string            `parquet:"path,optional"`
	PartitionValues         map[string]*string `parquet:"partitionValues,optional"`
	Size                    *int64             `parquet:"size,optional"`
	ModificationTime        *int64             `parquet:"modificationTime,optional"`
	DataChange              *bool              `parquet:"dataChange,optional"`
	Tags                    map[string]*string `parquet:"tags,optional"`
	DeletionVector          *checkpointVector  `parquet:"deletionVector,optional"`
	BaseRowID               *int64             `parquet:"baseRowId,optional"`
	DefaultRowCommitVersion *int64             `parquet:"defaultRowCommitVersion,optional"`
	ClusteringProvider      *string            `parquet:"clusteringProvider,optional"`
	Stats                   *string            `parquet:"stats,optional"`
}

type checkpointVector struct {
	StorageType    *string `parquet:"storageType,optional"`
	PathOrInlineDV *string `parquet:"pathOrInlineDv,optional"`
	Offset         *int32  `parquet:"offset,optional"`
	SizeInBytes    *int32  `parquet:"sizeInBytes,optional"`
	Cardinality    *int64  `parquet:"cardinality,optional"`
	MaxRowIndex    *int64  `parquet:"maxRowIndex,optional"`
}

type checkpointRemove struct {
	Path                    *string            `parquet:"path,optional"`
	DeletionTimestamp       *int64             `parquet:"deletionTimestamp,optional"`
	DataChange              *bool              `parquet:"dataChange,optional"`
	ExtendedFileMetadata    *bool              `parquet:"extendedFileMetadata,optional"`
	PartitionValues         map[string]*string `parquet:"partitionValues,optional"`
	Size                    *int64             `parquet:"size,optional"`
	DeletionVector          *checkpointVector  `parquet:"deletionVector,optional"`
	BaseRowID               *int64             `parquet:"baseRowId,optional"`
	DefaultRowCommitVersion *int64             `parquet:"defaultRowCommitVersion,optional"`
}

type checkpointMetadata struct {
	ID               *string            `parquet:"id,optional"`
	Name             *string            `parquet:"name,optional"`
	Description      *string            `parquet:"description,optional"`
	Format           *checkpointFormat  `parquet:"format,optional"`
	SchemaString     *string            `parquet:"schemaString,optional"`
	PartitionColumns []*string          `parquet:"partitionColumns,optional,list"`
	Configuration    map[string]*string `parquet:"configuration,optional"`
	CreatedTime      *int64             `parquet:"createdTime,optional"`
}

type checkpointFormat struct {
	Provider *string            `parquet:"provider,optional"`
	Options  map[string]*string `parquet:"options,optional"`
}

type checkpointProtocol struct {
	MinReader      *int32    `parquet:"minReaderVersion,optional"`
	MinWriter      *int32    `parquet:"minWriterVersion,optional"`
	ReaderFeatures []*string `parquet:"readerFeatures,optional,list"`
	WriterFeatures []*string `parquet:"writerFeatures,optional,list"`
}

type checkpointDomain struct {
	Domain        *string `parquet:"domain,optional"`
	Configuration *string `parquet:"configuration,optional"`
	Removed       *bool   `parquet:"removed,optional"`
}
