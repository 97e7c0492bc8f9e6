//! The types of expressions and what evaluating them costs at worst.

use std::collections::HashMap;

use kube_cel::cel::{
    IdedExpr,
    common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, SelectExpr, operators},
};

use super::{
    cost::traversal,
    source::Source,
    types::{REQUEST_BYTES_MAX, Type},
};

/// A type and what it costs to compute a value of it.
pub(super) struct Typed<'s> {
    pub type_: Type<'s>,
    pub cost: u64,
}

/// Infers the type of an expression, or finds its mistakes. `variables` are the names that it may use.
pub(super) fn infer<'s>(
    expression: &IdedExpr,
    source: &Source<'_>,
    variables: Vec<(String, Type<'s>)>,
) -> Result<Typed<'s>, Vec<String>> {
    let mut inference = Inference { source, variables, seen: HashMap::new(), mistakes: Vec::new() };
    let typed = inference.infer(expression);
    if inference.mistakes.is_empty() { Ok(typed) } else { Err(inference.mistakes) }
}

struct Inference<'t, 's> {
    source: &'t Source<'t>,
    variables: Vec<(String, Type<'s>)>,
    /// How often a selection, identifier or operator was met, to find its place in the text.
    seen: HashMap<String, usize>,
    mistakes: Vec<String>,
}

impl<'s> Inference<'_, 's> {
    fn nth(&mut self, what: String) -> usize {
        let count = self.seen.entry(what).or_default();
        *count += 1;
        *count - 1
    }

    fn infer(&mut self, expression: &IdedExpr) -> Typed<'s> {
        match &expression.expr {
            Expr::Literal(literal) => Typed { type_: literal_type(literal), cost: 0 },
            Expr::Ident(name) => self.identifier(name),
            Expr::Select(select) => self.selection(select),
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(loop_) => self.comprehension(loop_),
            Expr::List(list) => {
                let elements: Vec<Typed<'s>> = list.elements.iter().map(|element| self.infer(element)).collect();
                let cost = elements.iter().fold(10u64, |sum, element| sum.saturating_add(element.cost));
                let count = elements.len() as u64;
                let mut types = elements.into_iter().map(|element| element.type_);
                let first = types.next().unwrap_or(Type::Dyn);
                let same = types.all(|type_| std::mem::discriminant(&type_) == std::mem::discriminant(&first));
                Typed { type_: Type::List(Box::new(if same { first } else { Type::Dyn }), count), cost }
            }
            Expr::Map(map) => {
                let cost = map.entries.iter().fold(30u64, |sum, entry| sum.saturating_add(self.entry(&entry.expr)));
                Typed { type_: Type::Map(Box::new(Type::Dyn), map.entries.len() as u64), cost }
            }
            Expr::Struct(object) => {
                let cost = object.entries.iter().fold(40u64, |sum, entry| sum.saturating_add(self.entry(&entry.expr)));
                Typed { type_: Type::Dyn, cost }
            }
            Expr::Unspecified => Typed { type_: Type::Dyn, cost: 0 },
        }
    }

    fn entry(&mut self, entry: &EntryExpr) -> u64 {
        match entry {
            EntryExpr::StructField(field) => self.infer(&field.value).cost,
            EntryExpr::MapEntry(entry) => self.infer(&entry.key).cost.saturating_add(self.infer(&entry.value).cost),
        }
    }

    fn identifier(&mut self, name: &str) -> Typed<'s> {
        let known = self.variables.iter().rev().find(|(variable, _)| variable == name).map(|(_, type_)| type_.clone());
        let nth = self.nth(format!("identifier {name}"));
        let type_ = known.unwrap_or_else(|| {
            if !TYPE_NAMES.contains(&name) {
                let place = self.source.identifier(name, nth);
                let message = format!("undeclared reference to '{name}' (in container '')");
                self.mistakes.push(self.source.report(place, &message));
            }
            Type::Dyn
        });
        Typed { type_, cost: 1 }
    }

    fn selection(&mut self, select: &SelectExpr) -> Typed<'s> {
        let operand = self.infer(&select.operand);
        let nth = self.nth(format!("selection {}", select.field));
        let found = operand.type_.field(&select.field);
        let type_ = found.unwrap_or_else(|| {
            let place = self.source.selection(&select.field, nth);
            let message = match operand.type_ {
                Type::Object { .. } | Type::Metadata => format!("undefined field '{}'", select.field),
                ref other => format!("type '{}' does not support field selection", other.name()),
            };
            self.mistakes.push(self.source.report(place, &message));
            Type::Dyn
        });
        let cost = operand.cost.saturating_add(1);
        Typed { type_: if select.test { Type::Bool } else { type_ }, cost }
    }

    fn comprehension(&mut self, loop_: &ComprehensionExpr) -> Typed<'s> {
        let range = self.infer(&loop_.iter_range);
        let (item, rounds) = match &range.type_ {
            Type::List(items, max) => ((**items).clone(), *max),
            Type::Map(_, max) => (Type::String(253), *max),
            _ => (Type::Dyn, REQUEST_BYTES_MAX),
        };
        let init = self.infer(&loop_.accu_init);
        let accumulated = match init.type_ {
            // An empty list takes the type of what is put into it.
            Type::List(..) | Type::Map(..) => Type::List(Box::new(Type::Dyn), rounds),
            other => other,
        };
        let outer = self.variables.len();
        self.variables.push((loop_.iter_var.clone(), item));
        if let Some(second) = &loop_.iter_var2 {
            self.variables.push((second.clone(), Type::Dyn));
        }
        self.variables.push((loop_.accu_var.clone(), accumulated));
        let condition = self.infer(&loop_.loop_cond);
        let round = self.infer(&loop_.loop_step);
        let result = self.infer(&loop_.result);
        self.variables.truncate(outer);
        let round = condition.cost.saturating_add(round.cost);
        let cost = rounds
            .saturating_mul(round)
            .saturating_add(range.cost)
            .saturating_add(init.cost)
            .saturating_add(result.cost);
        Typed { type_: result.type_, cost }
    }

    fn call(&mut self, call: &CallExpr) -> Typed<'s> {
        let target = call.target.as_deref().and_then(|target| match (&target.expr, call.func_name.as_str()) {
            // Names with a dot, such as optional.of, parse as a method of a name.
            (Expr::Ident(name), _) if NAMESPACES.contains(&name.as_str()) => None,
            _ => Some(self.infer(target)),
        });
        let mut operands: Vec<Typed<'s>> = target.into_iter().collect();
        // The operands of a binary operator stand on both sides of it; its place is counted between them.
        let symbol = operator_symbol(&call.func_name);
        let mut nth = 0;
        for (index, argument) in call.args.iter().enumerate() {
            operands.push(self.infer(argument));
            if index == 0
                && let Some(symbol) = symbol
            {
                nth = self.nth(format!("operator {symbol}"));
            }
        }
        let all = operands.iter().fold(1u64, |sum, operand| sum.saturating_add(operand.cost));
        let types: Vec<&Type<'s>> = operands.iter().map(|operand| &operand.type_).collect();
        if let Some(symbol) = symbol
            && let [left, right] = types.as_slice()
            && !applies(&call.func_name, left, right)
        {
            let (left, right) = (left.name(), right.name());
            let message = format!("found no matching overload for '_{symbol}_' applied to '({left}, {right})'");
            self.mistakes.push(self.source.report(self.source.operator(symbol, nth), &message));
        }
        let extra = extra_cost(&call.func_name, &types);
        let cost = match (call.func_name.as_str(), operands.as_slice()) {
            (operators::CONDITIONAL, [condition, then, otherwise]) => {
                condition.cost.saturating_add(then.cost.max(otherwise.cost)).saturating_add(1)
            }
            (operators::LOGICAL_AND | operators::LOGICAL_OR, _) => all - 1,
            _ => all,
        };
        let type_ = result_type(&call.func_name, &types);
        Typed { type_, cost: cost.saturating_add(extra) }
    }
}

/// Names that stand for types and are values themselves.
const TYPE_NAMES: [&str; 12] =
    ["bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type", "dyn", "timestamp"];
/// The first part of functions that are named with a dot.
const NAMESPACES: [&str; 6] = ["optional", "math", "base64", "sets", "ip", "semver"];

fn literal_type<'s>(literal: &LiteralValue) -> Type<'s> {
    match literal {
        LiteralValue::Boolean(_) => Type::Bool,
        LiteralValue::Bytes(_) => Type::Bytes,
        LiteralValue::Double(_) => Type::Double,
        LiteralValue::Int(_) => Type::Int,
        LiteralValue::Null => Type::Null,
        LiteralValue::String(text) => Type::String(text.inner().len() as u64),
        LiteralValue::UInt(_) => Type::Uint,
    }
}

fn operator_symbol(function: &str) -> Option<&'static str> {
    Some(match function {
        operators::ADD => "+",
        operators::SUBSTRACT => "-",
        operators::MULTIPLY => "*",
        operators::DIVIDE => "/",
        operators::MODULO => "%",
        operators::EQUALS => "==",
        operators::NOT_EQUALS => "!=",
        operators::GREATER => ">",
        operators::GREATER_EQUALS => ">=",
        operators::LESS => "<",
        operators::LESS_EQUALS => "<=",
        _ => return None,
    })
}

/// Whether an operator exists for two types; anything but two scalars is left to the evaluation.
fn applies(function: &str, left: &Type<'_>, right: &Type<'_>) -> bool {
    if !left.is_scalar() || !right.is_scalar() {
        return true;
    }
    let same = std::mem::discriminant(left) == std::mem::discriminant(right);
    match function {
        operators::EQUALS | operators::NOT_EQUALS => same,
        operators::GREATER | operators::GREATER_EQUALS | operators::LESS | operators::LESS_EQUALS => {
            same || (left.is_number() && right.is_number())
        }
        operators::ADD => match (left, right) {
            (Type::Timestamp, Type::Duration) | (Type::Duration, Type::Timestamp | Type::Duration) => true,
            (Type::Bool | Type::Timestamp, _) => false,
            _ => same,
        },
        operators::SUBSTRACT => match (left, right) {
            (Type::Timestamp, Type::Timestamp | Type::Duration) | (Type::Duration, Type::Duration) => true,
            _ => same && left.is_number(),
        },
        operators::MODULO => same && matches!(left, Type::Int | Type::Uint),
        _ => same && left.is_number(),
    }
}

fn result_type<'s>(function: &str, operands: &[&Type<'s>]) -> Type<'s> {
    let first = operands.first().copied();
    match function {
        operators::LOGICAL_AND
        | operators::LOGICAL_OR
        | operators::LOGICAL_NOT
        | operators::NOT_STRICTLY_FALSE
        | operators::EQUALS
        | operators::NOT_EQUALS
        | operators::GREATER
        | operators::GREATER_EQUALS
        | operators::LESS
        | operators::LESS_EQUALS
        | operators::IN
        | "matches"
        | "startsWith"
        | "endsWith"
        | "contains"
        | "bool"
        | "isSorted"
        | "isURL"
        | "isIP"
        | "isCIDR"
        | "isQuantity"
        | "isSemver"
        | "hasValue"
        | "intersects"
        | "equivalent" => Type::Bool,
        "size" | "int" | "indexOf" | "lastIndexOf" | "getFullYear" | "getMonth" | "getDate" | "getDayOfMonth"
        | "getDayOfWeek" | "getDayOfYear" | "getHours" | "getMinutes" | "getSeconds" | "getMilliseconds" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" | "lowerAscii" | "upperAscii" | "trim" | "replace" | "substring" | "charAt" | "join" | "format"
        | "quote" | "find" | "reverse" => match first {
            Some(Type::String(max)) => Type::String(*max),
            _ => Type::String(REQUEST_BYTES_MAX),
        },
        "split" | "findAll" => match first {
            Some(Type::String(max)) => Type::List(Box::new(Type::String(*max)), *max),
            _ => Type::Dyn,
        },
        "timestamp" => Type::Timestamp,
        "duration" => Type::Duration,
        "bytes" => Type::Bytes,
        operators::ADD => match operands {
            [Type::String(left), Type::String(right)] => Type::String(left.saturating_add(*right)),
            [Type::List(items, left), Type::List(_, right)] => Type::List(items.clone(), left.saturating_add(*right)),
            [left, right] if left == right => (*left).clone(),
            _ => Type::Dyn,
        },
        operators::SUBSTRACT | operators::MULTIPLY | operators::DIVIDE | operators::MODULO => match operands {
            [left, right] if left == right && left.is_number() => (*left).clone(),
            _ => Type::Dyn,
        },
        operators::NEGATE => first.cloned().unwrap_or(Type::Dyn),
        operators::CONDITIONAL => match operands {
            [_, then, otherwise] if std::mem::discriminant(*then) == std::mem::discriminant(*otherwise) => {
                (*then).clone()
            }
            _ => Type::Dyn,
        },
        operators::INDEX => match first {
            Some(Type::List(items, _)) => (**items).clone(),
            Some(Type::Map(values, _)) => (**values).clone(),
            _ => Type::Dyn,
        },
        _ => Type::Dyn,
    }
}

/// What a call costs beyond the call itself, by the size of what it walks over.
fn extra_cost(function: &str, operands: &[&Type<'_>]) -> u64 {
    let bytes = |type_: &Type<'_>| match type_ {
        Type::String(max) => *max,
        Type::Dyn | Type::Bytes => REQUEST_BYTES_MAX,
        _ => 0,
    };
    let first = operands.first().map_or(0, |type_| bytes(type_));
    let second = operands.get(1).map_or(0, |type_| bytes(type_));
    match function {
        "matches" | "find" | "findAll" => traversal(first).saturating_mul(second.div_ceil(4).max(1)),
        "contains" => traversal(first).saturating_mul(traversal(second).max(1)),
        "startsWith" | "endsWith" => traversal(second),
        "lowerAscii" | "upperAscii" | "trim" | "replace" | "substring" | "split" | "indexOf" | "lastIndexOf"
        | "quote" | "string" | "reverse" => traversal(first),
        operators::EQUALS | operators::NOT_EQUALS => traversal(first.min(second)),
        operators::ADD => traversal(first.saturating_add(second)),
        operators::IN => match operands.get(1) {
            Some(Type::List(_, max)) => *max,
            _ => 0,
        },
        _ => 0,
    }
}
