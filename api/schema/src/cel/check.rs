//! What an API server checks of a rule before it accepts the CRD: syntax, declared fields, types, cost.

use kube_cel::cel::{
    IdedExpr,
    common::ast::{EntryExpr, Expr},
    parser::Parser,
};
use serde_json::json;

use super::{
    Compiled,
    cost::{Cardinality, RULE_COST_MAX, TOTAL_COST_MAX, below, everywhere, over_budget},
    infer::infer,
    optional,
    source::Source,
    types::Type,
};
use crate::{
    ListType, MapType, Rule, Schema,
    field::{Errors, Path},
};

/// Deepest nesting of an expression.
const DEPTH_MAX: u16 = 96;
/// The time of the parser doubles with each bracket inside of an operator that is repeated.
const UNARY_REPEATED_MAX: usize = 12;

/// The mistakes found so far, and what the rules cost together.
#[derive(Default)]
pub(super) struct Checking {
    pub errors: Errors,
    total: u64,
    expensive: Vec<(u64, String)>,
}

/// Where in the schema a rule stands.
#[derive(Clone)]
pub(super) struct Scope {
    resource: bool,
    cardinality: Cardinality,
    /// The schema below which old and new values cannot be distinguished.
    uncorrelatable: Option<String>,
}

impl Scope {
    pub(super) fn root() -> Self {
        Scope { resource: true, cardinality: Some(1), uncorrelatable: None }
    }

    pub(super) fn field(&self, schema: &Schema, at: &Path<'_>) -> Self {
        self.inner(schema, at, schema.map_type != Some(MapType::Atomic))
    }

    pub(super) fn values(&self, schema: &Schema) -> Self {
        Scope { cardinality: below(schema, self.cardinality), resource: false, ..self.clone() }
    }

    pub(super) fn items(&self, schema: &Schema, at: &Path<'_>) -> Self {
        self.inner(schema, at, schema.list_type == Some(ListType::Map))
    }

    fn inner(&self, schema: &Schema, at: &Path<'_>, correlatable: bool) -> Self {
        let uncorrelatable = self.uncorrelatable.clone().or_else(|| (!correlatable).then(|| at.to_string()));
        Scope { resource: false, cardinality: below(schema, self.cardinality), uncorrelatable }
    }
}

impl Checking {
    /// Checks one rule; `None` where it cannot be evaluated.
    pub(super) fn rule(&mut self, rule: &Rule, schema: &Schema, scope: &Scope, at: &Path<'_>) -> Option<Compiled> {
        let shown = json!({
            "Rule": rule.rule,
            "Message": rule.message.clone().unwrap_or_default(),
            "MessageExpression": rule.message_expression.clone().unwrap_or_default(),
            "Reason": rule.reason,
            "FieldPath": rule.field_path.clone().unwrap_or_default(),
            "OptionalOldSelf": rule.optional_old_self,
        });
        let shown = ordered(&shown);
        let rule_at = at.child("rule");
        let before = self.errors.len();
        let expression = match Self::expression(&rule.rule, schema, scope, rule, &Want::Bool) {
            Ok((expression, cost)) => {
                self.observe("estimated rule cost", everywhere(cost, schema, scope.cardinality), &rule_at);
                Some(expression)
            }
            Err(detail) => {
                self.invalid(&rule_at, &shown, detail);
                None
            }
        };
        let message_at = at.child("messageExpression");
        let message = rule.message_expression.as_deref().filter(|text| !text.trim().is_empty()).and_then(|text| {
            match Self::expression(text, schema, scope, rule, &Want::Text) {
                Ok((message, cost)) => {
                    self.observe("estimated messageExpression cost", cost, &message_at);
                    Some(message)
                }
                Err(detail) => {
                    self.invalid(&message_at, &shown, detail);
                    None
                }
            }
        });
        let uses_old = expression.as_ref().is_some_and(|expression| uses(expression, "oldSelf"));
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
        let expression = expression.filter(|_| self.errors.len() == before)?;
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

    fn invalid(&mut self, at: &Path<'_>, shown: &str, detail: String) {
        self.errors.add(crate::field::FieldError {
            mistake: crate::field::Mistake::Invalid,
            field: at.to_string(),
            value: shown.to_owned(),
            detail,
        });
    }

    fn expression(
        text: &str,
        schema: &Schema,
        scope: &Scope,
        rule: &Rule,
        want: &Want,
    ) -> Result<(IdedExpr, u64), String> {
        let expression = parse(text).map_err(|mistake| format!("{}: {mistake}", want.failed()))?;
        let source = Source::of(text);
        let resource = scope.resource || schema.embedded_resource;
        let of_self = Type::of(schema, resource).unwrap_or(Type::Dyn);
        let of_old = if rule.optional_old_self == Some(true) { Type::Dyn } else { of_self.clone() };
        let typed = infer(&expression, &source, vec![("self".to_owned(), of_self), ("oldSelf".to_owned(), of_old)])
            .map_err(|mistakes| format!("{}: {}", want.failed(), mistakes.join("\n")))?;
        match (want, &typed.type_) {
            (_, Type::Dyn) | (Want::Bool, Type::Bool) | (Want::Text, Type::String(_)) => Ok((expression, typed.cost)),
            (Want::Bool, _) => Err("cel expression must evaluate to a bool".to_owned()),
            (Want::Text, _) => Err("messageExpression must evaluate to a string".to_owned()),
        }
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
}

/// The rule as a JSON object in the order in which the API server's type declares its fields.
fn ordered(rule: &serde_json::Value) -> String {
    let fields = ["Rule", "Message", "MessageExpression", "Reason", "FieldPath", "OptionalOldSelf"];
    let fields: Vec<String> =
        fields.iter().map(|name| format!("\"{name}\":{}", crate::go_text::json(&rule[*name]))).collect();
    format!("{{{}}}", fields.join(","))
}

/// Parses an expression, or reports where it is none.
pub(super) fn parse(text: &str) -> Result<IdedExpr, String> {
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
    let mut expression = parser.parse(text).map_err(|errors| syntax(&errors, text))?;
    optional::as_indexes(&mut expression);
    Ok(expression)
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
    match &expression.expr {
        Expr::Ident(ident) => ident == name,
        Expr::Select(select) => uses(&select.operand, name),
        Expr::Call(call) => {
            call.target.as_deref().is_some_and(|target| uses(target, name))
                || call.args.iter().any(|arg| uses(arg, name))
        }
        Expr::List(list) => list.elements.iter().any(|element| uses(element, name)),
        Expr::Map(map) => map.entries.iter().any(|entry| entry_uses(&entry.expr, name)),
        Expr::Struct(object) => object.entries.iter().any(|entry| entry_uses(&entry.expr, name)),
        Expr::Comprehension(loop_) => {
            [&loop_.iter_range, &loop_.accu_init, &loop_.loop_cond, &loop_.loop_step, &loop_.result]
                .into_iter()
                .any(|part| uses(part, name))
        }
        Expr::Literal(_) | Expr::Unspecified => false,
    }
}

fn entry_uses(entry: &EntryExpr, name: &str) -> bool {
    match entry {
        EntryExpr::StructField(field) => uses(&field.value, name),
        EntryExpr::MapEntry(entry) => uses(&entry.key, name) || uses(&entry.value, name),
    }
}
