//! What an API server checks of a rule before it accepts the CRD: syntax, declared fields, types, cost.

use std::sync::Arc;

use kube_cel::cel::{IdedExpr, common::ast::Expr, parser::Parser};
use serde_json::json;

use super::{
    Compiled, constant,
    cost::{Cardinality, RULE_COST_MAX, TOTAL_COST_MAX, below, everywhere, over_budget},
    declared::Declared,
    estimate,
    macros::{self, Macros},
    source::Source,
    types::Type,
    typing::Typing,
};
use crate::{
    ListType, Rule, Schema,
    cel_name::escape,
    field::{Errors, FieldError, Mistake, Path},
};

/// Deepest nesting of an expression.
const DEPTH_MAX: u16 = 96;
/// The time of the parser doubles with each bracket inside of an operator that is repeated.
const UNARY_REPEATED_MAX: usize = 12;

/// The mistakes found so far, and what the rules cost together.
#[derive(Default)]
pub(super) struct Checking {
    pub errors: Errors,
    pub total: u64,
    expensive: Vec<(u64, String)>,
}

/// What is known of the values at a place. It is asked for from the first rule on downwards.
#[derive(Clone)]
enum Known {
    NotAsked,
    Declared(Arc<Declared>),
    /// There, or above, is something that CEL cannot see.
    Nothing,
}

/// Where in the schema a rule stands.
#[derive(Clone)]
pub(super) struct Scope {
    cardinality: Cardinality,
    known: Known,
    /// The schema below which old and new values cannot be distinguished.
    uncorrelatable: Option<String>,
}

impl Scope {
    pub(super) fn root(schema: &Schema) -> Self {
        let known = if schema.validations.is_empty() {
            Known::NotAsked
        } else {
            Declared::of(schema, true).map_or(Known::Nothing, Known::Declared)
        };
        Scope { cardinality: Some(1), known, uncorrelatable: None }
    }

    pub(super) fn field(&self, schema: &Schema, at: &Path<'_>, name: &str, field: &Schema) -> Self {
        self.inner(schema, at, true, field, |declared| declared.field(&escape(name)?).cloned())
    }

    pub(super) fn values(&self, schema: &Schema, at: &Path<'_>, values: &Schema) -> Self {
        self.inner(schema, at, true, values, |declared| declared.elements().cloned())
    }

    pub(super) fn items(&self, schema: &Schema, at: &Path<'_>, items: &Schema) -> Self {
        let correlatable = schema.list_type == Some(ListType::Map);
        self.inner(schema, at, correlatable, items, |declared| declared.elements().cloned())
    }

    fn inner(
        &self,
        schema: &Schema,
        at: &Path<'_>,
        correlatable: bool,
        child: &Schema,
        declared: impl Fn(&Declared) -> Option<Arc<Declared>>,
    ) -> Self {
        let uncorrelatable = self.uncorrelatable.clone().or_else(|| (!correlatable).then(|| at.to_string()));
        let anew = || Declared::of(child, child.embedded_resource).map_or(Known::Nothing, Known::Declared);
        let known = match &self.known {
            Known::NotAsked if child.validations.is_empty() => Known::NotAsked,
            Known::NotAsked => anew(),
            Known::Declared(parent) => declared(parent).map_or_else(anew, Known::Declared),
            Known::Nothing => Known::Nothing,
        };
        Scope { cardinality: below(schema, self.cardinality), known, uncorrelatable }
    }
}

impl Checking {
    /// Checks the rules of one place; those with mistakes are left out.
    pub(super) fn rules(&mut self, schema: &Schema, scope: &Scope, at: &Path<'_>) -> Vec<Compiled> {
        let here = at.child("x-kubernetes-validations");
        let declared = match &scope.known {
            _ if schema.validations.is_empty() => return Vec::new(),
            Known::Declared(declared) => declared,
            Known::NotAsked | Known::Nothing => {
                let what = "internal error: failed to construct type information for x-kubernetes-validations rules";
                let detail = format!("{what}: unable to convert structural schema to CEL declarations");
                self.add(Mistake::Internal, &here, "", detail);
                return Vec::new();
            }
        };
        let rules = schema.validations.iter().enumerate();
        rules.filter_map(|(index, rule)| self.rule(rule, declared, scope, &here.index(index))).collect()
    }

    /// Checks one rule; `None` where it cannot be evaluated.
    fn rule(&mut self, rule: &Rule, declared: &Arc<Declared>, scope: &Scope, at: &Path<'_>) -> Option<Compiled> {
        let before = self.errors.len();
        let shown = shown(rule);
        let rule_at = at.child("rule");
        let expression = match expression(&rule.rule, declared, rule, &Want::Bool) {
            Ok((expression, cost)) => {
                self.observe("estimated rule cost", everywhere(cost, declared, scope.cardinality), &rule_at);
                Some(expression)
            }
            Err(detail) => {
                self.add(Mistake::Invalid, &rule_at, &shown, detail);
                None
            }
        };
        let message_at = at.child("messageExpression");
        let text = rule.message_expression.as_deref().filter(|text| !text.trim().is_empty() && expression.is_some());
        let message = text.and_then(|text| match self::expression(text, declared, rule, &Want::Text) {
            Ok((message, cost)) => {
                self.observe("estimated messageExpression cost", cost, &message_at);
                Some(message.evaluated())
            }
            Err(detail) => {
                self.add(Mistake::Invalid, &message_at, &shown, detail);
                None
            }
        });
        let uses_old = expression.as_ref().is_some_and(|expression| uses(&expression.expression, "oldSelf"));
        if uses_old {
            if let Some(place) = &scope.uncorrelatable {
                let detail =
                    format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {place}");
                self.errors.invalid(&rule_at, &rule.rule, detail);
            }
        } else if let Some(optional) = rule.optional_old_self {
            self.errors.invalid(
                &at.child("optionalOldSelf"),
                optional,
                "may not be set if oldSelf is not used in rule",
            );
        }
        let expression = expression.filter(|_| self.errors.len() == before)?.evaluated();
        Some(Compiled { rule: rule.clone(), expression, message, uses_old })
    }

    /// Refuses a schema whose rules are too expensive together.
    pub(super) fn report_total(&mut self, at: &Path<'_>) {
        if self.total <= TOTAL_COST_MAX {
            return;
        }
        self.expensive.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
        for (_, place) in self.expensive.iter().take(4) {
            let detail = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
            self.errors.forbidden(&Path::root(place), detail);
        }
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        self.errors.forbidden(at, over_budget(what, self.total, TOTAL_COST_MAX));
    }

    fn observe(&mut self, what: &str, cost: u64, at: &Path<'_>) {
        if cost > RULE_COST_MAX {
            self.errors.forbidden(at, over_budget(what, cost, RULE_COST_MAX));
        }
        self.total = self.total.saturating_add(cost);
        if cost >= TOTAL_COST_MAX / 100 {
            self.expensive.push((cost, at.to_string()));
        }
    }

    fn add(&mut self, mistake: Mistake, at: &Path<'_>, shown: &str, detail: String) {
        self.errors.add(FieldError { mistake, field: at.to_string(), value: shown.to_owned(), detail });
    }
}

/// Compiles one expression of a rule, and estimates what it costs.
fn expression(text: &str, declared: &Arc<Declared>, rule: &Rule, want: &Want) -> Result<(Parsed, u64), String> {
    let own = declared.type_();
    let old = if rule.optional_old_self == Some(true) { Type::optional(own.clone()) } else { own.clone() };
    let variables = vec![("self".to_owned(), own), ("oldSelf".to_owned(), old)];
    let parsed =
        Parsed::of(text, variables, Macros::Standard).map_err(|mistake| format!("{}: {mistake}", want.failed()))?;
    match (want, &parsed.typing.type_) {
        (Want::Bool, Type::Bool) | (Want::Text, Type::String) => {
            parsed.check_constants().map_err(|why| format!("{}: {why}", want.not_made()))?;
            let cost = estimate::cost(&parsed.expression, &parsed.typing, Some(declared));
            Ok((parsed, cost))
        }
        (Want::Bool, _) => Err("cel expression must evaluate to a bool".to_owned()),
        (Want::Text, _) => Err("messageExpression must evaluate to a string".to_owned()),
    }
}

/// An expression with the types of its parts.
#[derive(Debug)]
pub(super) struct Parsed {
    expression: IdedExpr,
    pub typing: Typing,
}

impl Parsed {
    /// Parses an expression that may use the variables; or what is wrong with it.
    pub(super) fn of(text: &str, variables: Vec<(String, Type)>, macros: Macros) -> Result<Self, String> {
        let source = Source::of(text);
        let mut expression = parse(text)?;
        macros::expand(&mut expression, macros).map_err(|mistake| source.report(0, &mistake))?;
        let typing = Typing::of(&expression, &source, variables).map_err(|mistakes| mistakes.join("\n"))?;
        Ok(Self { expression, typing })
    }

    /// Makes the conversions that are made before an expression is evaluated.
    pub(super) fn check_constants(&self) -> Result<(), String> {
        constant::check(&self.expression, &self.typing)
    }

    /// The expression as the evaluator takes it.
    pub(super) fn evaluated(self) -> IdedExpr {
        let mut expression = self.expression;
        macros::lower(&mut expression, &self.typing.words);
        expression
    }
}

/// What an expression must give.
enum Want {
    Bool,
    Text,
}

impl Want {
    fn failed(&self) -> &'static str {
        match self {
            Want::Bool => "compilation failed",
            Want::Text => "messageExpression compilation failed",
        }
    }

    fn not_made(&self) -> &'static str {
        match self {
            Want::Bool => "program instantiation failed",
            Want::Text => "messageExpression instantiation failed",
        }
    }
}

/// The rule as a JSON object in the order in which the API server's type declares its fields.
fn shown(rule: &Rule) -> String {
    let fields = [
        ("Rule", json!(rule.rule)),
        ("Message", json!(rule.message.as_deref().unwrap_or_default())),
        ("MessageExpression", json!(rule.message_expression.as_deref().unwrap_or_default())),
        ("Reason", json!(rule.reason)),
        ("FieldPath", json!(rule.field_path.as_deref().unwrap_or_default())),
        ("OptionalOldSelf", json!(rule.optional_old_self)),
    ];
    let fields: Vec<String> =
        fields.iter().map(|(name, value)| format!("\"{name}\":{}", crate::go_text::json(value))).collect();
    format!("{{{}}}", fields.join(","))
}

/// Parses an expression, or reports where it is none.
fn parse(text: &str) -> Result<IdedExpr, String> {
    let source = Source::of(text);
    if let Some(place) = source.repeated_unary().nth(UNARY_REPEATED_MAX) {
        let message = format!(
            "more than {UNARY_REPEATED_MAX} unary operators are repeated, as in --x or !!x; leave out the pairs"
        );
        return Err(source.report(place, &message));
    }
    // The parser's own limit is the same, but it counts wrongly once it is exceeded.
    if let Some(place) = source.nested_deeper_than(usize::from(DEPTH_MAX)) {
        return Err(source.report(place, &format!("expression recursion limit exceeded: {DEPTH_MAX}")));
    }
    let parser = Parser::new().max_recursion_depth(DEPTH_MAX).enable_optional_syntax(true);
    parser.parse(text).map_err(|errors| syntax(&errors, text))
}

fn syntax(errors: &kube_cel::cel::ParseErrors, text: &str) -> String {
    let reports: Vec<String> = errors
        .errors
        .iter()
        .map(|error| {
            let (line, column) = (error.pos.0.max(1), error.pos.1.max(1));
            let shown = text.lines().nth(line.unsigned_abs() - 1).unwrap_or_default();
            let mark = format!("{}^", ".".repeat(column.unsigned_abs() - 1));
            format!("ERROR: <input>:{line}:{column}: {}\n | {shown}\n | {mark}", error.msg)
        })
        .collect();
    reports.join("\n")
}

fn uses(expression: &IdedExpr, name: &str) -> bool {
    matches!(&expression.expr, Expr::Ident(ident) if ident == name)
        || macros::parts(&expression.expr).into_iter().any(|part| uses(part, name))
}
