module github.com/wasmill/wasmill/abi/sdk/go

go 1.26.0
