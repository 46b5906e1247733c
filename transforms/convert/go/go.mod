module github.com/wasmill/wasmill/transforms/convert/go

go 1.26.0

require github.com/wasmill/wasmill/abi/sdk/go v0.0.0

replace github.com/wasmill/wasmill/abi/sdk/go => ../../../abi/sdk/go
