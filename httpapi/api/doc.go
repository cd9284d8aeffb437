// Package api has the types and routes of the HTTP contract, generated from
// httpapi/openapi.yaml.
package api

//go:generate go run github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2 --config generate.yaml ../openapi.yaml
