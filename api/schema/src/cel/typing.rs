//! What type each part of an expression has, and which function each call means.

use std::collections::{HashMap, HashSet};

use kube_cel::cel::{
    IdedExpr,
    common::ast::{
        CallExpr, ComprehensionExpr, EntryExpr, Expr, ListExpr, LiteralValue, MapExpr, SelectExpr, operators,
    },
};

use super::{
    declared::Declared,
    formatting,
    functions::{self, Overload},
    macros::qualified_name,
    source::Source,
    types::{Bindings, Parameter, Type},
};
use crate::{cel_name, pattern, structural::formats};

/// A function of which lists may hold items of different types.
const FORMAT: &str = "format";

/// The seconds since 1970 that a time may have: the years 1 to 9999.
const SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// An expression without mistakes.
#[derive(Debug)]
pub(super) struct Typing {
    /// The type of the whole.
    pub type_: Type,
    types: HashMap<u64, Type>,
    calls: HashMap<u64, Resolved>,
    /// The selections of fields that are called like reserved words.
    pub words: HashSet<u64>,
}

/// The function that a call means.
#[derive(Debug)]
pub(super) struct Resolved {
    /// The whole name, with its namespace.
    pub function: &'static str,
    /// The ways to call it that fit.
    pub overloads: Vec<&'static str>,
    /// Whether what stands in front of the dot is an operand, not a namespace.
    pub is_method: bool,
}

impl Typing {
    /// Finds the types of an expression, or its mistakes. `variables` are the names that it may use.
    pub(super) fn of(
        expression: &IdedExpr,
        source: &Source<'_>,
        variables: Vec<(String, Type)>,
    ) -> Result<Typing, Vec<String>> {
        let mut checker = Checker {
            source,
            variables,
            seen: HashMap::new(),
            bindings: Bindings::default(),
            free: 0,
            types: HashMap::new(),
            places: HashMap::new(),
            calls: HashMap::new(),
            words: HashSet::new(),
            literals: Vec::new(),
            formats: Vec::new(),
            exempt: 0,
            mistakes: Vec::new(),
        };
        let whole = checker.check(expression);
        checker.check_literals();
        checker.check_formats();
        let Checker { bindings, types, calls, words, mut mistakes, .. } = checker;
        if mistakes.is_empty() {
            let types = types.into_iter().map(|(id, type_)| (id, bindings.resolve_fully(&type_))).collect();
            return Ok(Typing { type_: bindings.resolve_fully(&whole.type_), types, calls, words });
        }
        mistakes.sort_by_key(|(place, _)| *place);
        Err(mistakes.into_iter().map(|(place, message)| source.report(place, &message)).collect())
    }

    pub(super) fn type_of(&self, expression: &IdedExpr) -> &Type {
        self.types.get(&expression.id).unwrap_or(&Type::Dyn)
    }

    pub(super) fn call(&self, expression: &IdedExpr) -> Option<&Resolved> {
        self.calls.get(&expression.id)
    }
}

/// A part of an expression with its type.
struct Typed {
    type_: Type,
    /// Where messages about it point.
    place: usize,
}

struct Checker<'t> {
    source: &'t Source<'t>,
    variables: Vec<(String, Type)>,
    /// How often a selection, identifier or operator was met, to find its place in the text.
    seen: HashMap<String, usize>,
    bindings: Bindings,
    free: u32,
    types: HashMap<u64, Type>,
    places: HashMap<u64, usize>,
    calls: HashMap<u64, Resolved>,
    words: HashSet<u64>,
    /// The types and places of the items of list and map literals, which must be of one type each.
    literals: Vec<Vec<(Type, usize)>>,
    /// Texts that are written out, what they are given, and the places of both.
    formats: Vec<(String, Vec<(Type, usize)>, usize)>,
    /// How many calls that take items of any type are around.
    exempt: usize,
    mistakes: Vec<(usize, String)>,
}

impl Checker<'_> {
    fn nth(&mut self, what: String) -> usize {
        let count = self.seen.entry(what).or_default();
        *count += 1;
        *count - 1
    }

    fn mistake(&mut self, place: usize, message: String) -> Type {
        self.mistakes.push((place, message));
        Type::Error
    }

    fn free(&mut self) -> Type {
        self.free += 1;
        Type::Parameter(Parameter::Free(self.free))
    }

    fn check(&mut self, expression: &IdedExpr) -> Typed {
        let typed = match &expression.expr {
            Expr::Literal(literal) => {
                // Only strings are counted: macros write other literals of their own.
                let is_text = matches!(literal, LiteralValue::String(_));
                let place = if is_text { self.source.string(self.nth("string".to_owned())) } else { 0 };
                Typed { type_: literal_type(literal), place }
            }
            Expr::Ident(name) => self.identifier(name),
            Expr::Select(select) => self.selection(expression, select),
            Expr::Call(call) if call.func_name == operators::OPT_SELECT => self.optional_selection(expression, call),
            Expr::Call(call) => self.call(expression.id, call),
            Expr::Comprehension(each) => self.comprehension(each),
            Expr::List(list) => self.list(list),
            Expr::Map(map) => self.map(map),
            Expr::Struct(object) => {
                let message = format!("undeclared reference to '{}' (in container '')", object.type_name);
                Typed { type_: self.mistake(0, message), place: 0 }
            }
            Expr::Unspecified => Typed { type_: Type::Dyn, place: 0 },
        };
        self.types.insert(expression.id, typed.type_.clone());
        self.places.insert(expression.id, typed.place);
        typed
    }

    fn identifier(&mut self, name: &str) -> Typed {
        let known = self.variables.iter().rev().find(|(variable, _)| variable == name).map(|(_, type_)| type_.clone());
        let place = self.source.identifier(name, self.nth(format!("identifier {name}")));
        let type_ = known
            .or_else(|| functions::type_named(name))
            .unwrap_or_else(|| self.mistake(place, format!("undeclared reference to '{name}' (in container '')")));
        Typed { type_, place }
    }

    fn selection(&mut self, expression: &IdedExpr, select: &SelectExpr) -> Typed {
        if let Some(type_) = qualified_name(expression).and_then(|name| functions::type_named(&name)) {
            return Typed { type_, place: 0 };
        }
        let operand = self.check(&select.operand);
        let mut place = self.source.selection(&select.field, self.nth(format!("selection {}", select.field)));
        if select.test {
            place = self.source.call("has", self.nth("call has".to_owned()));
        }
        let type_ = self.field(expression.id, &operand.type_, &select.field, place);
        Typed { type_: if select.test { Type::Bool } else { type_ }, place }
    }

    /// `operand.?field`
    fn optional_selection(&mut self, expression: &IdedExpr, call: &CallExpr) -> Typed {
        let [operand, IdedExpr { expr: Expr::Literal(LiteralValue::String(field)), .. }] = call.args.as_slice() else {
            return Typed { type_: self.mistake(0, "unsupported optional field selection".to_owned()), place: 0 };
        };
        let operand = self.check(operand);
        let field = field.inner();
        let place = self.source.optional_selection(field, self.nth(format!("selection ?{field}")));
        let type_ = match self.field(expression.id, &operand.type_, field, place) {
            already @ Type::Optional(_) if matches!(self.bindings.resolve(&operand.type_), Type::Optional(_)) => {
                already
            }
            type_ => Type::optional(type_),
        };
        let resolved = Resolved { function: "_?._", overloads: vec!["select_optional_field"], is_method: false };
        self.calls.insert(expression.id, resolved);
        Typed { type_, place }
    }

    /// The type of a field; that of an optional object's field is optional.
    fn field(&mut self, id: u64, operand: &Type, name: &str, place: usize) -> Type {
        let operand = self.bindings.resolve(operand);
        if let Type::Optional(value) = &operand {
            let field = self.field(id, value, name, place);
            return Type::optional(field);
        }
        match &operand {
            Type::Map(_, values) => (**values).clone(),
            Type::Object(object) => self
                .declared_field(id, &object.0, name)
                .unwrap_or_else(|| self.mistake(place, format!("undefined field '{name}'"))),
            Type::Library(_) if !operand.is_opaque() => self.mistake(place, format!("undefined field '{name}'")),
            Type::Parameter(_) => {
                self.bindings.assign(&Type::Dyn, &operand);
                Type::Dyn
            }
            other if other.is_dyn_or_error() => Type::Dyn,
            other => {
                let message = format!("type '{}' does not support field selection", other.name());
                self.mistake(place, message);
                Type::Dyn
            }
        }
    }

    /// The type of a declared field. One that is called like a reserved word may be written as it is.
    fn declared_field(&mut self, id: u64, object: &Declared, name: &str) -> Option<Type> {
        if let Some(field) = object.field(name) {
            return Some(field.type_());
        }
        let escaped = cel_name::escape(name).filter(|_| cel_name::is_reserved(name))?;
        let type_ = object.field(&escaped)?.type_();
        self.words.insert(id);
        Some(type_)
    }

    fn comprehension(&mut self, each: &ComprehensionExpr) -> Typed {
        let range = self.check(&each.iter_range);
        // A copy that a macro makes stands in the text once.
        let (seen, mistakes) = (self.seen.clone(), self.mistakes.len());
        let init = self.check(&each.accu_init);
        let is_bound =
            matches!(&each.loop_cond.expr, Expr::Literal(LiteralValue::Boolean(goes_on)) if !goes_on.inner());
        if is_bound {
            self.seen = seen;
            self.mistakes.truncate(mistakes);
        }
        let range_type = self.bindings.resolve(&range.type_);
        let (first, second) = match &range_type {
            Type::List(items) if each.iter_var2.is_some() => (Type::Int, (**items).clone()),
            Type::List(items) => ((**items).clone(), Type::Dyn),
            Type::Map(keys, values) => ((**keys).clone(), (**values).clone()),
            Type::Dyn | Type::Error | Type::Parameter(_) => {
                self.bindings.assign(&Type::Dyn, &range_type);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                let message = format!(
                    "expression of type '{}' cannot be range of a comprehension (must be list, map, or dynamic)",
                    other.name()
                );
                self.mistake(range.place, message);
                (Type::Error, Type::Error)
            }
        };
        let outer = self.variables.len();
        self.variables.push((each.accu_var.clone(), init.type_.clone()));
        // Where the macro names its variables, the text has them, but the expression has not.
        for name in std::iter::once(&each.iter_var).chain(&each.iter_var2) {
            self.nth(format!("identifier {name}"));
        }
        self.variables.push((each.iter_var.clone(), first));
        if let Some(name) = &each.iter_var2 {
            self.variables.push((name.clone(), second));
        }
        let condition = self.check(&each.loop_cond);
        self.expect(&Type::Bool, &condition);
        let step = self.check(&each.loop_step);
        self.expect(&init.type_, &step);
        self.variables.truncate(outer + 1);
        let result = self.check(&each.result);
        self.variables.truncate(outer);
        Typed { type_: self.bindings.resolve(&result.type_), place: range.place }
    }

    fn expect(&mut self, wanted: &Type, found: &Typed) {
        if !self.bindings.assign(wanted, &found.type_) {
            self.mismatch(wanted, found);
        }
    }

    fn mismatch(&mut self, wanted: &Type, found: &Typed) -> Type {
        let message = format!("expected type '{}' but found '{}'", wanted.name(), found.type_.name());
        self.mistake(found.place, message)
    }

    /// The type of several items together.
    fn join(&mut self, before: Option<Type>, item: &Typed) -> Type {
        match before {
            None => item.type_.clone(),
            Some(before) if self.bindings.assign(&before, &item.type_) => before.most_general(item.type_.clone()),
            Some(before) => self.mismatch(&before, item),
        }
    }

    /// What an optional item adds to a list or map: the value in it.
    fn unwrapped(&mut self, item: Typed) -> Typed {
        let type_ = match item.type_ {
            Type::Optional(value) => (*value).clone(),
            Type::Dyn => Type::Dyn,
            ref other => self.mismatch(&Type::optional(other.clone()), &item),
        };
        Typed { type_, ..item }
    }

    fn list(&mut self, list: &ListExpr) -> Typed {
        let mut joined = None;
        let mut items = Vec::new();
        for (index, element) in list.elements.iter().enumerate() {
            let mut item = self.check(element);
            if list.optional_indices.contains(&index) {
                item = self.unwrapped(item);
            }
            joined = Some(self.join(joined, &item));
            items.push((item.type_, item.place));
        }
        self.literal(items);
        let items = joined.unwrap_or_else(|| self.free());
        Typed { type_: Type::list(items), place: 0 }
    }

    fn map(&mut self, map: &MapExpr) -> Typed {
        let (mut keys, mut values) = (None, None);
        let (mut key_items, mut value_items) = (Vec::new(), Vec::new());
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else { continue };
            let key = self.check(&entry.key);
            keys = Some(self.join(keys, &key));
            let mut value = self.check(&entry.value);
            if entry.optional {
                value = self.unwrapped(value);
            }
            values = Some(self.join(values, &value));
            key_items.push((key.type_, key.place));
            value_items.push((value.type_, value.place));
        }
        self.literal(key_items);
        self.literal(value_items);
        let keys = keys.unwrap_or_else(|| self.free());
        let values = values.unwrap_or_else(|| self.free());
        Typed { type_: Type::map(keys, values), place: 0 }
    }

    fn literal(&mut self, items: Vec<(Type, usize)>) {
        if self.exempt == 0 {
            self.literals.push(items);
        }
    }

    /// Items of one literal have one type: what is not known is another type than what is.
    fn check_literals(&mut self) {
        if !self.mistakes.is_empty() {
            return;
        }
        for items in std::mem::take(&mut self.literals) {
            let mut items = items.iter().map(|(type_, place)| (self.bindings.resolve_fully(type_), *place));
            let Some((first, _)) = items.next() else { continue };
            let Some((other, place)) = items.find(|(type_, _)| *type_ != first) else { continue };
            let message = format!("expected type '{}' but found '{}'", first.name(), other.name());
            self.mistake(place, message);
        }
    }

    fn check_formats(&mut self) {
        if !self.mistakes.is_empty() {
            return;
        }
        for (text, values, place) in std::mem::take(&mut self.formats) {
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
        self.formats.push((text.inner().to_owned(), values, place));
    }

    fn call(&mut self, id: u64, call: &CallExpr) -> Typed {
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
            operands.iter().for_each(|operand| {
                if !self.bindings.assign(&operand.type_, &Type::Bool) {
                    self.mismatch(&Type::Bool, operand);
                }
            });
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

    fn operator_place(&mut self, symbol: &str) -> usize {
        self.source.operator(symbol, self.nth(format!("operator {symbol}")))
    }
}

fn literal_type(literal: &LiteralValue) -> Type {
    match literal {
        LiteralValue::Boolean(_) => Type::Bool,
        LiteralValue::Bytes(_) => Type::Bytes,
        LiteralValue::Double(_) => Type::Double,
        LiteralValue::Int(_) => Type::Int,
        LiteralValue::Null => Type::Null,
        LiteralValue::String(_) => Type::String,
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
        operators::INDEX | operators::OPT_INDEX => "[",
        operators::CONDITIONAL => "?",
        operators::IN => "in",
        operators::LOGICAL_AND => "&&",
        operators::LOGICAL_OR => "||",
        _ => return None,
    })
}
