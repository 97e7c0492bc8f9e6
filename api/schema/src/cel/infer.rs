//! The types of expressions and what evaluating them costs at worst.

use std::collections::HashMap;

use kube_cel::cel::{
    IdedExpr,
    common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, ListExpr, LiteralValue, SelectExpr, operators},
};

use super::{
    cost::traversal,
    source::Source,
    types::{REQUEST_BYTES_MAX, Type},
};
use crate::{pattern, structural::formats};

/// A type and what it costs to compute a value of it.
pub(super) struct Typed<'s> {
    pub type_: Type<'s>,
    pub cost: u64,
    /// Where messages about the expression point.
    place: usize,
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
            Expr::Literal(literal) => {
                // Only strings are counted: macros write other literals of their own.
                let is_text = matches!(literal, LiteralValue::String(_));
                let place = if is_text { self.source.string(self.nth("string".to_owned())) } else { 0 };
                Typed { type_: literal_type(literal), cost: 0, place }
            }
            Expr::Ident(name) => self.identifier(name),
            Expr::Select(select) => self.selection(select),
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(loop_) => self.comprehension(loop_),
            Expr::List(list) => self.list(list),
            Expr::Map(map) => {
                let entries: Vec<Typed<'s>> = map.entries.iter().map(|entry| self.entry(&entry.expr)).collect();
                let cost = entries.iter().fold(30u64, |sum, entry| sum.saturating_add(entry.cost));
                let count = entries.len() as u64;
                let mut types = entries.into_iter().map(|entry| entry.type_);
                let first = types.next().unwrap_or(Type::Dyn);
                let same = types.all(|type_| std::mem::discriminant(&type_) == std::mem::discriminant(&first));
                Typed { type_: Type::Map(Box::new(if same { first } else { Type::Dyn }), count), cost, place: 0 }
            }
            Expr::Struct(object) => {
                let cost =
                    object.entries.iter().fold(40u64, |sum, entry| sum.saturating_add(self.entry(&entry.expr).cost));
                Typed { type_: Type::Dyn, cost, place: 0 }
            }
            Expr::Unspecified => Typed { type_: Type::Dyn, cost: 0, place: 0 },
        }
    }

    /// The value of an entry, at the cost of its key as well.
    fn entry(&mut self, entry: &EntryExpr) -> Typed<'s> {
        match entry {
            EntryExpr::StructField(field) => self.infer(&field.value),
            EntryExpr::MapEntry(entry) => {
                let key = self.infer(&entry.key).cost;
                let value = self.infer(&entry.value);
                Typed { cost: value.cost.saturating_add(key), ..value }
            }
        }
    }

    fn identifier(&mut self, name: &str) -> Typed<'s> {
        let known = self.variables.iter().rev().find(|(variable, _)| variable == name).map(|(_, type_)| type_.clone());
        let place = self.source.identifier(name, self.nth(format!("identifier {name}")));
        let type_ = known.unwrap_or_else(|| {
            if !TYPE_NAMES.contains(&name) {
                let message = format!("undeclared reference to '{name}' (in container '')");
                self.mistakes.push(self.source.report(place, &message));
            }
            Type::Dyn
        });
        Typed { type_, cost: 1, place }
    }

    fn selection(&mut self, select: &SelectExpr) -> Typed<'s> {
        let operand = self.infer(&select.operand);
        let place = self.source.selection(&select.field, self.nth(format!("selection {}", select.field)));
        let found = operand.type_.field(&select.field);
        let type_ = found.unwrap_or_else(|| {
            let message = match operand.type_ {
                Type::Object { .. } | Type::Metadata => format!("undefined field '{}'", select.field),
                ref other => format!("type '{}' does not support field selection", other.name()),
            };
            self.mistakes.push(self.source.report(place, &message));
            Type::Dyn
        });
        let cost = operand.cost.saturating_add(1);
        Typed { type_: if select.test { Type::Bool } else { type_ }, cost, place }
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
        // Where the macro names its variable, the text has it, but the expression has not.
        self.nth(format!("identifier {}", loop_.iter_var));
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
        Typed { type_: result.type_, cost, place: range.place }
    }

    fn list(&mut self, list: &ListExpr) -> Typed<'s> {
        let elements: Vec<Typed<'s>> = list.elements.iter().map(|element| self.infer(element)).collect();
        let cost = elements.iter().fold(10u64, |sum, element| sum.saturating_add(element.cost));
        let count = elements.len() as u64;
        let mut types = elements.into_iter();
        let first = types.next().map_or(Type::Dyn, |element| element.type_);
        let mut same = true;
        for element in types {
            if std::mem::discriminant(&element.type_) != std::mem::discriminant(&first) {
                same = false;
                if first.is_scalar() && element.type_.is_scalar() {
                    let message = format!("expected type '{}' but found '{}'", first.name(), element.type_.name());
                    self.mistakes.push(self.source.report(element.place, &message));
                }
            }
        }
        Typed { type_: Type::List(Box::new(if same { first } else { Type::Dyn }), count), cost, place: 0 }
    }

    fn call(&mut self, call: &CallExpr) -> Typed<'s> {
        // Names with a dot, such as optional.of, parse as a method of a name.
        let target = call.target.as_deref().filter(|target| match &target.expr {
            Expr::Ident(name) => !NAMESPACES.contains(&name.as_str()),
            _ => true,
        });
        let symbol = operator_symbol(&call.func_name);
        let prefix = symbol.filter(|_| call.args.len() == 1).map(|symbol| self.operator_place(symbol));
        let mut operands: Vec<Typed<'s>> = target.map(|target| self.infer(target)).into_iter().collect();
        // An operator stands between its operands: its place is counted after the first of them.
        let mut place = prefix;
        if symbol.is_none() {
            let nth = self.nth(format!("call {}", call.func_name));
            place = Some(self.source.call(&call.func_name, nth));
            if !KNOWN_FUNCTIONS.split_whitespace().any(|known| known == call.func_name)
                && !call.func_name.starts_with(['_', '@', '!', '-'])
            {
                let message = format!("undeclared reference to '{}' (in container '')", call.func_name);
                self.mistakes.push(self.source.report(place.unwrap_or_default(), &message));
            }
        }
        for argument in &call.args {
            operands.push(self.infer(argument));
            if let Some(symbol) = symbol.filter(|_| place.is_none()) {
                place = Some(self.operator_place(symbol));
            }
        }
        let place = place.unwrap_or_default();
        let all = operands.iter().fold(1u64, |sum, operand| sum.saturating_add(operand.cost));
        let types: Vec<&Type<'s>> = operands.iter().map(|operand| &operand.type_).collect();
        if let Some(message) = mismatch(&call.func_name, target.is_some(), &types) {
            self.mistakes.push(self.source.report(place, &message));
        }
        if matches!(call.func_name.as_str(), operators::LOGICAL_AND | operators::LOGICAL_OR) {
            for operand in operands.iter().filter(|operand| !matches!(operand.type_, Type::Bool | Type::Dyn)) {
                let message = format!("expected type 'bool' but found '{}'", operand.type_.name());
                self.mistakes.push(self.source.report(operand.place, &message));
            }
        }
        if let Some(Expr::Literal(LiteralValue::String(text))) = call.args.last().map(|argument| &argument.expr) {
            let is_legal = match call.func_name.as_str() {
                "matches" => pattern::compile(text.inner()).is_ok(),
                "duration" => formats::is_go_duration(text.inner()),
                "timestamp" => formats::holds("date-time", text.inner()),
                _ => true,
            };
            if !is_legal {
                let at = operands.last().map_or(0, |operand| operand.place);
                self.mistakes.push(self.source.report(at, &format!("invalid {} argument", call.func_name)));
            }
        }
        let extra = extra_cost(&call.func_name, &types);
        let cost = match (call.func_name.as_str(), operands.as_slice()) {
            (operators::CONDITIONAL, [condition, then, otherwise]) => {
                condition.cost.saturating_add(then.cost.max(otherwise.cost)).saturating_add(1)
            }
            (operators::LOGICAL_AND | operators::LOGICAL_OR, _) => all - 1,
            _ => all,
        };
        Typed { type_: result_type(&call.func_name, &types), cost: cost.saturating_add(extra), place }
    }

    fn operator_place(&mut self, symbol: &str) -> usize {
        self.source.operator(symbol, self.nth(format!("operator {symbol}")))
    }
}

/// What is wrong with the operands of a call, where their types say so for sure.
fn mismatch(function: &str, is_method: bool, operands: &[&Type<'_>]) -> Option<String> {
    let names: Vec<String> = operands.iter().map(|operand| operand.name()).collect();
    let known = |type_: &Type<'_>| !matches!(type_, Type::Dyn);
    let fits = match (function, operands) {
        // Their operands are looked at one by one.
        (operators::LOGICAL_AND | operators::LOGICAL_OR, _) => true,
        (operators::LOGICAL_NOT, [operand]) => matches!(operand, Type::Bool | Type::Dyn),
        (operators::NEGATE, [operand]) => matches!(operand, Type::Int | Type::Double | Type::Duration | Type::Dyn),
        (operators::INDEX, [Type::List(..), index]) => {
            matches!(index, Type::Int | Type::Uint | Type::Double | Type::Dyn)
        }
        (operators::INDEX, [Type::Map(..), key]) => matches!(key, Type::String(_) | Type::Dyn),
        (operators::CONDITIONAL, [condition, then, otherwise]) => {
            let same = std::mem::discriminant(*then) == std::mem::discriminant(*otherwise);
            matches!(condition, Type::Bool | Type::Dyn) && (same || !then.is_scalar() || !otherwise.is_scalar())
        }
        (operators::IN, [item, range]) => match range {
            Type::List(items, _) => applies(operators::EQUALS, item, items),
            Type::Map(..) => matches!(item, Type::String(_) | Type::Dyn),
            Type::Dyn => true,
            _ => false,
        },
        ("size", [operand]) => {
            matches!(operand, Type::String(_) | Type::Bytes | Type::List(..) | Type::Map(..) | Type::Dyn)
        }
        ("startsWith" | "endsWith" | "contains" | "matches", [text, part]) if is_method => {
            matches!(text, Type::String(_) | Type::Dyn) && matches!(part, Type::String(_) | Type::Dyn)
        }
        (_, [left, right]) if operator_symbol(function).is_some() => applies(function, left, right),
        _ => true,
    };
    if fits || !operands.iter().any(|operand| known(operand)) {
        return None;
    }
    let applied = match (is_method, names.split_first()) {
        (true, Some((target, arguments))) => format!("{target}.({})", arguments.join(", ")),
        _ => format!("({})", names.join(", ")),
    };
    Some(format!("found no matching overload for '{function}' applied to '{applied}'"))
}

/// Functions and macros that rules may call.
const KNOWN_FUNCTIONS: &str = "
    abs add all asApproximateFloat asInteger bool bytes ceil charAt cidr compareTo contains containsCIDR
    containsIP decode double duration dyn encode endsWith equivalent exists exists_one existsOne family filter
    find findAll floor format getDate getDayOfMonth getDayOfWeek getDayOfYear getEscapedPath getFullYear getHost
    getHostname getHours getMilliseconds getMinutes getMonth getPort getQuery getScheme getSeconds has hasValue
    indexOf int intersects ip isCanonical isCIDR isGlobalUnicast isGreaterThan isInf isInteger isIP isLessThan
    isLinkLocalMulticast isLinkLocalUnicast isLoopback isNaN isQuantity isSemver isSorted isURL isUnspecified
    join lastIndexOf lowerAscii major map masked matches max min minor named none of ofNonZeroValue optMap
    optFlatMap or orValue patch prefixLength quantity quote replace reverse semver sign size split startsWith
    string sub substring sum timestamp trim type uint upperAscii url validate value
";

/// Names that stand for types and are values themselves.
const TYPE_NAMES: [&str; 12] =
    ["bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type", "dyn", "timestamp"];
/// The first part of functions that are named with a dot.
const NAMESPACES: [&str; 5] = ["optional", "base64", "sets", "ip", "format"];

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
        operators::SUBSTRACT | operators::NEGATE => "-",
        operators::MULTIPLY => "*",
        operators::DIVIDE => "/",
        operators::MODULO => "%",
        operators::EQUALS => "==",
        operators::NOT_EQUALS => "!=",
        operators::GREATER => ">",
        operators::GREATER_EQUALS => ">=",
        operators::LESS => "<",
        operators::LESS_EQUALS => "<=",
        operators::LOGICAL_NOT => "!",
        operators::INDEX => "[",
        operators::CONDITIONAL => "?",
        operators::IN => "in",
        operators::LOGICAL_AND => "&&",
        operators::LOGICAL_OR => "||",
        _ => return None,
    })
}

/// Whether an operator exists for two types; where one of them is not known, that is left to the evaluation.
fn applies(function: &str, left: &Type<'_>, right: &Type<'_>) -> bool {
    if *left == Type::Dyn || *right == Type::Dyn {
        return true;
    }
    if !left.is_scalar() && !right.is_scalar() {
        // Of what is no scalar, only objects can be null.
        return match (left, right) {
            (Type::Null, Type::Object { .. } | Type::Metadata) | (Type::Object { .. } | Type::Metadata, Type::Null) => {
                true
            }
            _ => std::mem::discriminant(left) == std::mem::discriminant(right),
        };
    }
    if !left.is_scalar() || !right.is_scalar() {
        return false;
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
