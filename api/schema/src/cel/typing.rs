//! What type each part of an expression has, and which function each call means.

mod calls;
mod collections;

use std::collections::{HashMap, HashSet};

use kube_cel::cel::{
    IdedExpr,
    common::ast::{CallExpr, ComprehensionExpr, Expr, LiteralValue, SelectExpr, operators},
};

use super::{
    declared::Declared,
    functions,
    macros::qualified_name,
    source::Source,
    types::{Bindings, Parameter, Type},
};
use crate::cel_name;

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

/// A text that is written out with clauses for values.
struct Format {
    text: String,
    /// The types of what it is given, and their places.
    values: Vec<(Type, usize)>,
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
    formats: Vec<Format>,
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
