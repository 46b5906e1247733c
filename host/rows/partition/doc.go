// Package partition spreads rows over folders named "column=value", as Hive and Spark do, and cuts what goes into one folder
// into pieces that make files of bounded size.
//
// It names folders and sorts rows. It opens no file, and knows no sink and no format.
package partition
