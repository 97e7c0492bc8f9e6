// What Kubernetes' own code says about CustomResourceDefinitions and their CEL rules. See README.md.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"sort"
	"strings"

	"github.com/google/cel-go/checker"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"
)

func main() {
	commands := map[string]func([]string) error{"check": check, "json": documents, "answers": answers, "costs": costs, "functions": functions}
	if len(os.Args) > 1 {
		if command, known := commands[os.Args[1]]; known {
			if err := command(os.Args[2:]); err != nil {
				fmt.Fprintln(os.Stderr, "crd-oracle:", err)
				os.Exit(1)
			}
			return
		}
	}
	fmt.Fprintln(os.Stderr, "usage: crd-oracle check FILE… | json FILE… | answers <DEFINITIONS.json | costs <CASES.json | functions")
	os.Exit(2)
}

// base is the environment in which an API server reads the rules of a new definition.
func base() *environment.EnvSet {
	return environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion(), true)
}

// refusals are the errors with which a definition is refused, after the defaults that a server fills in.
func refusals(document []byte) (name string, refused []string, err error) {
	var given v1.CustomResourceDefinition
	if err := yaml.Unmarshal(document, &given); err != nil {
		return "", nil, err
	}
	if given.Kind != "CustomResourceDefinition" {
		return "", nil, errNoDefinition
	}
	v1.SetObjectDefaults_CustomResourceDefinition(&given)
	given.Status.StoredVersions = nil
	for _, version := range given.Spec.Versions {
		if version.Storage {
			given.Status.StoredVersions = []string{version.Name}
			break
		}
	}
	var definition apiextensions.CustomResourceDefinition
	if err := v1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&given, &definition, nil); err != nil {
		return given.Name, nil, err
	}
	refused = []string{}
	for _, mistake := range validation.ValidateCustomResourceDefinition(context.Background(), &definition) {
		refused = append(refused, mistake.Error())
	}
	return given.Name, refused, nil
}

var errNoDefinition = errors.New("no CustomResourceDefinition")

// each calls a function for each document of the files.
func each(files []string, do func(file string, document []byte) error) error {
	for _, file := range files {
		content, err := os.Open(file)
		if err != nil {
			return err
		}
		reader := utilyaml.NewYAMLReader(bufio.NewReader(content))
		for {
			document, err := reader.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err == nil {
				err = do(file, document)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
		}
		content.Close()
	}
	return nil
}

// check prints of each definition in the files whether it is accepted, or why not.
func check(files []string) error {
	return each(files, func(file string, document []byte) error {
		name, refused, err := refusals(document)
		switch {
		case errors.Is(err, errNoDefinition):
		case err != nil:
			fmt.Printf("BAD  %s %s: %v\n", file, name, err)
		case len(refused) == 0:
			fmt.Printf("OK   %s %s\n", file, name)
		}
		for _, mistake := range refused {
			fmt.Printf("BAD  %s %s: %s\n", file, name, mistake)
		}
		return nil
	})
}

// documents prints the definitions in the files as a list, as answers reads it.
func documents(files []string) error {
	all := []json.RawMessage{}
	err := each(files, func(_ string, document []byte) error {
		object, err := yaml.YAMLToJSON(document)
		if err != nil {
			return err
		}
		var head struct{ Kind string }
		if err := json.Unmarshal(object, &head); err == nil && head.Kind == "CustomResourceDefinition" {
			all = append(all, object)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(all)
}

// madeUp are the names that compilations give to the types of schemas: another one each time.
var madeUp = regexp.MustCompile(`selfType[0-9]+`)

// answers reads a list of definitions and prints the list of their refusals.
func answers([]string) error {
	var definitions []json.RawMessage
	if err := json.NewDecoder(os.Stdin).Decode(&definitions); err != nil {
		return err
	}
	all := make([]string, 0, len(definitions))
	for _, definition := range definitions {
		_, refused, err := refusals(definition)
		if err != nil {
			// It cannot be decoded, so that nothing is checked.
			refused = nil
		}
		sort.Strings(refused)
		line, err := json.Marshal(refused)
		if err != nil {
			return err
		}
		all = append(all, madeUp.ReplaceAllString(string(line), "selfType0"))
	}
	fmt.Printf("[\n%s\n]\n", strings.Join(all, ",\n"))
	return nil
}

// costs reads schemas with one rule each and prints, line by line, what the rule may cost at all its places together.
func costs([]string) error {
	var cases []struct {
		Schema *v1.JSONSchemaProps
		Rule   string
	}
	if err := json.NewDecoder(os.Stdin).Decode(&cases); err != nil {
		return err
	}
	fmt.Println("# Costs of generated rules, as Kubernetes 1.34 estimates them. Made by `tests/crd-oracle/run costs`; do not edit.")
	for _, each := range cases {
		var schema apiextensions.JSONSchemaProps
		if err := v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(each.Schema, &schema, nil); err != nil {
			return err
		}
		answer, err := cost(&schema, validation.RootCELContext(&schema))
		if err != nil {
			return fmt.Errorf("%s: %w", each.Rule, err)
		}
		fmt.Printf("%s\t%s\n", answer, each.Rule)
	}
	return nil
}

// cost finds the rule in a schema; empty where it is not there or below.
func cost(schema *apiextensions.JSONSchemaProps, at *validation.CELSchemaContext) (string, error) {
	if len(schema.XValidations) > 0 {
		known, err := at.TypeInfo()
		if err != nil {
			return "", err
		}
		compiled, err := structural.Compile(known.Schema, known.DeclType, celconfig.PerCallLimit, base(), structural.NewExpressionsEnvLoader())
		if err != nil {
			return "", err
		}
		if compiled[0].Error != nil {
			return "refused", nil
		}
		places := compiled[0].MaxCardinality
		if at.MaxCardinality != nil {
			places = *at.MaxCardinality
		}
		if compiled[0].MaxCost != 0 && places > math.MaxUint64/compiled[0].MaxCost {
			return fmt.Sprint(uint64(math.MaxUint64)), nil
		}
		return fmt.Sprint(compiled[0].MaxCost * places), nil
	}
	for name, field := range schema.Properties {
		if found, err := cost(&field, at.ChildPropertyContext(&field, name)); found != "" || err != nil {
			return found, err
		}
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		values := schema.AdditionalProperties.Schema
		return cost(values, at.ChildAdditionalPropertiesContext(values))
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		return cost(schema.Items.Schema, at.ChildItemsContext(schema.Items.Schema))
	}
	return "", nil
}

// functions prints every way to call every function: its name, the name of the way, its operands and its result.
func functions([]string) error {
	fmt.Println("# Functions of expressions in Kubernetes 1.34. Made by `tests/crd-oracle/run functions`; do not edit.")
	known := base().NewExpressionsEnv().Functions()
	names := make([]string, 0, len(known))
	for name := range known {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		for _, overload := range known[name].OverloadDecls() {
			operands := make([]string, 0, len(overload.ArgTypes()))
			for _, operand := range overload.ArgTypes() {
				operands = append(operands, checker.FormatCELType(operand))
			}
			style := "function"
			if overload.IsMemberFunction() {
				style = "method"
			}
			fmt.Printf("%s %s %s (%s) %s\n", name, overload.ID(), style, strings.Join(operands, ", "), checker.FormatCELType(overload.ResultType()))
		}
	}
	return nil
}
