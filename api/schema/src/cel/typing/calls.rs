//! Which function a call means.

use kube_cel::cel::{
    IdedExpr,
    common::ast::{CallExpr, Expr, LiteralValue, operators},
};

use super::{Checker, Format, Resolved, Typed};
use crate::{
    cel::{
        formatting,
        functions::{self, Overload},
        macros::qualified_name,
        types::{Parameter, Type},
    },
    pattern,
    structural::formats,
};

/// A function of which lists may hold items of different types.
const FORMAT: &str = "format";

/// The seconds since 1970 that a time may have: the years 1 to 9999.
const SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

impl Checker<'_> {
    pub(super) fn check_formats(&mut self) {
        if !self.mistakes.is_empty() {
            return;
        }
        for Format { text, values, place } in std::mem::take(&mut self.formats) {
            let types: Vec<Type> = values.iter().map(|(type_, _)| self.bindings.resolve_fully(type_)).collect();
            if let Err(wrong) = formatting::check(&text, &types) {
                let place = wrong.value.and_then(|value| values.get(value)).map_or(place, |(_, place)| *place);
                self.mistake(place, wrong.message);
            }
        }
    }

    /// Keeps a text with its values, where both stand here.
    fn keep_format(&mut self, call: &CallExpr, place: usize) {
        let target = call.target.as_ref().map(|target| &target.expr);
        let (Some(Expr::Literal(LiteralValue::String(text))), [IdedExpr { expr: Expr::List(list), .. }]) =
            (target, call.args.as_slice())
        else {
            return;
        };
        let value = |element: &IdedExpr| {
            let type_ = self.types.get(&element.id).cloned().unwrap_or(Type::Dyn);
            (type_, self.places.get(&element.id).copied().unwrap_or_default())
        };
        let values = list.elements.iter().map(value).collect();
        self.formats.push(Format { text: text.inner().to_owned(), values, place });
    }

    pub(super) fn call(&mut self, id: u64, call: &CallExpr) -> Typed {
        // A function may have a name with dots in it, such as optional.of, which parses as a method of a name.
        let namespace = call.target.as_deref().and_then(qualified_name);
        let namespaced = namespace.and_then(|prefix| functions::named(&format!("{prefix}.{}", call.func_name)));
        let target = call.target.as_deref().filter(|_| namespaced.is_none());
        let symbol = operator_symbol(&call.func_name);
        let prefix = symbol.filter(|_| call.args.len() == 1).map(|symbol| self.operator_place(symbol));
        let mut operands: Vec<Typed> = target.map(|target| self.check(target)).into_iter().collect();
        // An operator stands between its operands: its place is counted after the first of them.
        let mut place = prefix;
        if symbol.is_none() {
            let nth = self.nth(format!("call {}", call.func_name));
            place = Some(self.source.call(&call.func_name, nth));
        }
        self.exempt += usize::from(call.func_name == FORMAT);
        for argument in &call.args {
            operands.push(self.check(argument));
            if let Some(symbol) = symbol.filter(|_| place.is_none()) {
                place = Some(self.operator_place(symbol));
            }
        }
        self.exempt -= usize::from(call.func_name == FORMAT);
        let place = place.unwrap_or_default();
        let Some((function, overloads)) = namespaced.or_else(|| functions::named(&call.func_name)) else {
            let message = format!("undeclared reference to '{}' (in container '')", call.func_name);
            return Typed { type_: self.mistake(place, message), place };
        };
        self.check_literal(call, &operands);
        if call.func_name == FORMAT {
            self.keep_format(call, place);
        }
        let type_ = self.resolve(id, function, overloads, target.is_some(), &operands, place);
        Typed { type_, place }
    }

    /// Finds the ways to call a function that fit, and the type of the result.
    fn resolve(
        &mut self,
        id: u64,
        function: &'static str,
        overloads: &'static [Overload],
        is_method: bool,
        operands: &[Typed],
        place: usize,
    ) -> Type {
        let mut resolved = Resolved { function, overloads: Vec::new(), is_method };
        if matches!(function, operators::LOGICAL_AND | operators::LOGICAL_OR) {
            resolved.overloads.extend(overloads.iter().map(|overload| overload.id));
            self.calls.insert(id, resolved);
            let before = self.mistakes.len();
            for operand in operands {
                if !self.bindings.assign(&operand.type_, &Type::Bool) {
                    self.mismatch(&Type::Bool, operand);
                }
            }
            return if self.mistakes.len() == before { Type::Bool } else { Type::Error };
        }
        let mut result: Option<Type> = None;
        for overload in overloads.iter().filter(|overload| overload.is_method == is_method) {
            if overload.operands.len() != operands.len() {
                continue;
            }
            let wanted = self.fresh(overload);
            if !self.bindings.assign_all(operands.iter().map(|operand| &operand.type_).zip(&wanted[1..])) {
                continue;
            }
            resolved.overloads.push(overload.id);
            let found = self.bindings.resolve(&wanted[0]);
            result = Some(match result {
                None => found,
                Some(before) if before == Type::Dyn || before == found => before,
                Some(_) => Type::Dyn,
            });
        }
        let Some(result) = result else {
            let names: Vec<String> =
                operands.iter().map(|operand| self.bindings.resolve_fully(&operand.type_).name()).collect();
            let applied = match (is_method, names.split_first()) {
                (true, Some((target, arguments))) => format!("{target}.({})", arguments.join(", ")),
                _ => format!("({})", names.join(", ")),
            };
            return self.mistake(place, format!("found no matching overload for '{function}' applied to '{applied}'"));
        };
        self.calls.insert(id, resolved);
        result
    }

    /// The result and the operands of a function with parameters of this one call.
    fn fresh(&mut self, overload: &Overload) -> Vec<Type> {
        let own = |letter: char| self.free + 1 + u32::from(letter) - u32::from('A');
        let replace = |type_: &Type| {
            type_.replaced(&|parameter| match parameter {
                Parameter::Letter(letter) => Some(Type::Parameter(Parameter::Free(own(letter)))),
                Parameter::Free(_) => None,
            })
        };
        let types = std::iter::once(&overload.result).chain(&overload.operands).map(replace).collect();
        self.free += 26;
        types
    }

    /// What a function reads when it runs is read now where it is a literal.
    fn check_literal(&mut self, call: &CallExpr, operands: &[Typed]) {
        let Some(Expr::Literal(literal)) = call.args.first().map(|argument| &argument.expr) else { return };
        let is_legal = match (call.func_name.as_str(), literal) {
            ("matches", LiteralValue::String(text)) => pattern::compile(text.inner()).is_ok(),
            ("duration", LiteralValue::String(text)) => formats::is_go_duration(text.inner()),
            ("duration", LiteralValue::Int(_)) => false,
            ("timestamp", LiteralValue::String(text)) => formats::holds("date-time", text.inner()),
            ("timestamp", LiteralValue::Int(seconds)) => SECONDS.contains(seconds.inner()),
            _ => true,
        };
        if !is_legal {
            let at = operands.get(usize::from(call.target.is_some())).map_or(0, |operand| operand.place);
            self.mistake(at, format!("invalid {} argument", call.func_name));
        }
    }

    pub(super) fn operator_place(&mut self, symbol: &str) -> usize {
        self.source.operator(symbol, self.nth(format!("operator {symbol}")))
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
        operators::INDEX | operators::OPT_INDEX => "[",
        operators::CONDITIONAL => "?",
        operators::IN => "in",
        operators::LOGICAL_AND => "&&",
        operators::LOGICAL_OR => "||",
        _ => return None,
    })
}
