//! Macros that the parser leaves as calls, and forms that the evaluator does not know.

use std::collections::HashSet;

use kube_cel::cel::{
    IdedExpr,
    common::ast::{
        CallExpr, ComprehensionExpr, EntryExpr, Expr, ListExpr, LiteralValue, MapExpr, SelectExpr, operators,
    },
};

use crate::cel_name::escape;

/// The accumulator of comprehensions.
const RESULT: &str = "@result";
/// The evaluator's function that gives a list of [index, item] or [key, value].
pub(super) const ENTRIES: &str = "@entries";
/// The function that adds entries to a map.
pub(super) const INSERT: &str = "@mapInsert";
/// The namespace of that function.
pub(super) const INSERT_NAMESPACE: &str = "cel";

/// Macros beyond those of the parser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Macros {
    /// Those of rules and conditions.
    Standard,
    /// Those, and `cel.bind`.
    WithBind,
}

/// Expands the macros that the parser left as calls. Each part of the result has a number of its own.
pub(super) fn expand(expression: &mut IdedExpr, macros: Macros) -> Result<(), String> {
    Expansion { next: largest_number(expression) + 1, macros }.all(expression)
}

/// The parts of an expression that stand directly in it.
pub(super) fn parts(expression: &Expr) -> Vec<&IdedExpr> {
    match expression {
        Expr::Call(call) => call.target.as_deref().into_iter().chain(&call.args).collect(),
        Expr::Select(select) => vec![&select.operand],
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Map(map) => map.entries.iter().flat_map(|entry| of_entry(&entry.expr)).collect(),
        Expr::Struct(object) => object.entries.iter().flat_map(|entry| of_entry(&entry.expr)).collect(),
        Expr::Comprehension(each) => {
            vec![&each.iter_range, &each.accu_init, &each.loop_cond, &each.loop_step, &each.result]
        }
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => Vec::new(),
    }
}

fn of_entry(entry: &EntryExpr) -> Vec<&IdedExpr> {
    match entry {
        EntryExpr::StructField(field) => vec![&field.value],
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
    }
}

/// The same parts, to be changed.
pub(super) fn parts_mut(expression: &mut Expr) -> Vec<&mut IdedExpr> {
    match expression {
        Expr::Call(call) => call.target.as_deref_mut().into_iter().chain(&mut call.args).collect(),
        Expr::Select(select) => vec![&mut select.operand],
        Expr::List(list) => list.elements.iter_mut().collect(),
        Expr::Map(map) => map.entries.iter_mut().flat_map(|entry| in_entry(&mut entry.expr)).collect(),
        Expr::Struct(object) => object.entries.iter_mut().flat_map(|entry| in_entry(&mut entry.expr)).collect(),
        Expr::Comprehension(each) => {
            vec![&mut each.iter_range, &mut each.accu_init, &mut each.loop_cond, &mut each.loop_step, &mut each.result]
        }
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => Vec::new(),
    }
}

fn in_entry(entry: &mut EntryExpr) -> Vec<&mut IdedExpr> {
    match entry {
        EntryExpr::StructField(field) => vec![&mut field.value],
        EntryExpr::MapEntry(entry) => vec![&mut entry.key, &mut entry.value],
    }
}

fn largest_number(expression: &IdedExpr) -> u64 {
    let inner = parts(&expression.expr).into_iter().map(largest_number).max();
    expression.id.max(inner.unwrap_or_default())
}

/// An identifier, where the expression is one.
fn identifier(expression: &IdedExpr) -> Option<&str> {
    match &expression.expr {
        Expr::Ident(name) => Some(name),
        _ => None,
    }
}

struct Expansion {
    next: u64,
    macros: Macros,
}

impl Expansion {
    fn all(&mut self, expression: &mut IdedExpr) -> Result<(), String> {
        for part in parts_mut(&mut expression.expr) {
            self.all(part)?;
        }
        let Expr::Call(call) = &mut expression.expr else { return Ok(()) };
        if let Some(expanded) = self.expanded(call)? {
            expression.expr = expanded;
        }
        Ok(())
    }

    fn expanded(&mut self, call: &mut CallExpr) -> Result<Option<Expr>, String> {
        let Some(target) = call.target.as_deref() else { return Ok(None) };
        let (function, count) = (call.func_name.as_str(), call.args.len());
        if function == "bind" && count == 3 && identifier(target) == Some("cel") && self.macros == Macros::WithBind {
            let name = simple_name(&call.args[0], "cel.bind() variable names must be simple identifiers")?;
            return Ok(Some(self.bind(name, call.args[1].clone(), call.args[2].clone())));
        }
        if matches!(function, "optMap" | "optFlatMap") && count == 2 {
            let name = simple_name(&call.args[0], &format!("{function}() variable name must be a simple identifier"))?;
            return Ok(Some(self.opt_map(name, target.clone(), call.args[1].clone(), function == "optMap")));
        }
        let is_of_two = match function {
            "all" | "exists" | "existsOne" | "exists_one" => count == 3,
            "transformList" | "transformMap" | "transformMapEntry" => count == 3 || count == 4,
            _ => false,
        };
        if !is_of_two {
            return Ok(None);
        }
        let [first, second] = [0, 1].map(|at| simple_name(&call.args[at], "argument must be a simple name"));
        let names = (first?, second?);
        if names.0 == names.1 {
            return Err(format!("duplicate variable name: {}", names.0));
        }
        let mut rest = call.args.split_off(2);
        let Some(last) = rest.pop() else { return Ok(None) };
        let range = target.clone();
        Ok(Some(self.of_two(&call.func_name.clone(), range, names, rest.pop(), last)))
    }

    fn of_two(
        &mut self,
        function: &str,
        iter_range: IdedExpr,
        names: (String, String),
        filter: Option<IdedExpr>,
        last: IdedExpr,
    ) -> Expr {
        let always = self.boolean(true);
        let (init, condition, step, result) = match function {
            "all" => {
                let accumulated = self.result();
                let condition = self.call(operators::NOT_STRICTLY_FALSE, vec![accumulated]);
                let accumulated = self.result();
                (always, condition, self.call(operators::LOGICAL_AND, vec![accumulated, last]), self.result())
            }
            "exists" => {
                let accumulated = self.result();
                let negated = self.call(operators::LOGICAL_NOT, vec![accumulated]);
                let condition = self.call(operators::NOT_STRICTLY_FALSE, vec![negated]);
                let accumulated = self.result();
                let step = self.call(operators::LOGICAL_OR, vec![accumulated, last]);
                (self.boolean(false), condition, step, self.result())
            }
            "existsOne" | "exists_one" => {
                let operands = vec![self.result(), self.integer(1)];
                let counted = self.call(operators::ADD, operands);
                let accumulated = self.result();
                let step = self.call(operators::CONDITIONAL, vec![last, counted, accumulated]);
                let operands = vec![self.result(), self.integer(1)];
                (self.integer(0), always, step, self.call(operators::EQUALS, operands))
            }
            _ => {
                let (init, mut step) = self.transformed(function, &names.0, last);
                if let Some(filter) = filter {
                    let accumulated = self.result();
                    step = self.call(operators::CONDITIONAL, vec![filter, step, accumulated]);
                }
                (init, always, step, self.result())
            }
        };
        Expr::Comprehension(Box::new(ComprehensionExpr {
            iter_range,
            iter_var: names.0,
            iter_var2: Some(names.1),
            accu_var: RESULT.to_owned(),
            accu_init: init,
            loop_cond: condition,
            loop_step: step,
            result,
        }))
    }

    /// What a transformation begins with, and its step.
    fn transformed(&mut self, function: &str, key: &str, value: IdedExpr) -> (IdedExpr, IdedExpr) {
        let accumulated = self.result();
        if function == "transformList" {
            let one = self.part(Expr::List(ListExpr::new(vec![value])));
            let step = self.call(operators::ADD, vec![accumulated, one]);
            return (self.part(Expr::List(ListExpr::new(Vec::new()))), step);
        }
        let mut args = vec![accumulated];
        if function == "transformMap" {
            args.push(self.part(Expr::Ident(key.to_owned())));
        }
        args.push(value);
        let namespace = Some(Box::new(self.part(Expr::Ident(INSERT_NAMESPACE.to_owned()))));
        let step = self.part(Expr::Call(CallExpr { func_name: INSERT.to_owned(), target: namespace, args }));
        (self.part(Expr::Map(MapExpr { entries: Vec::new() })), step)
    }

    /// A loop without rounds, whose accumulator has the name.
    fn bind(&mut self, name: String, init: IdedExpr, result: IdedExpr) -> Expr {
        Expr::Comprehension(Box::new(ComprehensionExpr {
            iter_range: self.part(Expr::List(ListExpr::new(Vec::new()))),
            iter_var: "#unused".to_owned(),
            iter_var2: None,
            loop_cond: self.boolean(false),
            loop_step: self.part(Expr::Ident(name.clone())),
            accu_var: name,
            accu_init: init,
            result,
        }))
    }

    /// `target.hasValue() ? optional.of(bind(name, target.value(), value)) : optional.none()`.
    fn opt_map(&mut self, name: String, target: IdedExpr, value: IdedExpr, wraps: bool) -> Expr {
        let copy = self.copy(&target);
        let present = self.method(target, "hasValue");
        let init = self.method(copy, "value");
        let bound = self.bind(name, init, value);
        let mut mapped = self.part(bound);
        if wraps {
            mapped = self.optional("of", vec![mapped]);
        }
        let none = self.optional("none", Vec::new());
        Expr::Call(CallExpr {
            func_name: operators::CONDITIONAL.to_owned(),
            target: None,
            args: vec![present, mapped, none],
        })
    }

    fn copy(&mut self, expression: &IdedExpr) -> IdedExpr {
        let mut copy = expression.clone();
        self.renumber(&mut copy);
        copy
    }

    fn renumber(&mut self, expression: &mut IdedExpr) {
        expression.id = self.number();
        for part in parts_mut(&mut expression.expr) {
            self.renumber(part);
        }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    fn part(&mut self, expr: Expr) -> IdedExpr {
        IdedExpr { id: self.number(), expr }
    }

    fn result(&mut self) -> IdedExpr {
        self.part(Expr::Ident(RESULT.to_owned()))
    }

    fn boolean(&mut self, value: bool) -> IdedExpr {
        self.part(Expr::Literal(LiteralValue::Boolean(value.into())))
    }

    fn integer(&mut self, value: i64) -> IdedExpr {
        self.part(Expr::Literal(LiteralValue::Int(value.into())))
    }

    fn call(&mut self, function: &str, args: Vec<IdedExpr>) -> IdedExpr {
        self.part(Expr::Call(CallExpr { func_name: function.to_owned(), target: None, args }))
    }

    fn method(&mut self, target: IdedExpr, function: &str) -> IdedExpr {
        let target = Some(Box::new(target));
        self.part(Expr::Call(CallExpr { func_name: function.to_owned(), target, args: Vec::new() }))
    }

    fn optional(&mut self, function: &str, args: Vec<IdedExpr>) -> IdedExpr {
        let target = Some(Box::new(self.part(Expr::Ident("optional".to_owned()))));
        self.part(Expr::Call(CallExpr { func_name: function.to_owned(), target, args }))
    }
}

fn simple_name(expression: &IdedExpr, otherwise: &str) -> Result<String, String> {
    identifier(expression).map(str::to_owned).ok_or_else(|| otherwise.to_owned())
}

/// Rewrites what the evaluator does not know into what means the same there. `words`: the selections of fields that are
/// called like reserved words.
pub(super) fn lower(expression: &mut IdedExpr, words: &HashSet<u64>) {
    for part in parts_mut(&mut expression.expr) {
        lower(part, words);
    }
    let is_word = words.contains(&expression.id);
    match &mut expression.expr {
        // The evaluator fails on `x.?field` where the field is absent, and gives nothing for `x[?"field"]`, as it should
        // for both.
        Expr::Call(call) if call.func_name == operators::OPT_SELECT => {
            operators::OPT_INDEX.clone_into(&mut call.func_name);
            if let Some(IdedExpr { expr: Expr::Literal(LiteralValue::String(field)), .. }) =
                call.args.last_mut().filter(|_| is_word)
            {
                *field = value_name(field.inner()).as_str().into();
            }
        }
        Expr::Select(select) if is_word => select.field = value_name(&select.field),
        Expr::Comprehension(each) => one_variable(each),
        _ => {}
    }
}

/// The name of a field in values.
fn value_name(field: &str) -> String {
    escape(field).unwrap_or_else(|| field.to_owned())
}

/// A comprehension of two variables as one over pairs of them.
fn one_variable(each: &mut ComprehensionExpr) {
    let Some(second) = each.iter_var2.take() else { return };
    let pair = format!("@{}:{second}", each.iter_var);
    for part in [&mut each.loop_cond, &mut each.loop_step] {
        substitute(part, &each.iter_var, &pair, 0);
        substitute(part, &second, &pair, 1);
    }
    let range = std::mem::take(&mut each.iter_range);
    let id = range.id;
    each.iter_range =
        IdedExpr { id, expr: Expr::Call(CallExpr { func_name: ENTRIES.to_owned(), target: None, args: vec![range] }) };
    each.iter_var = pair;
}

/// Writes `pair[position]` in place of a variable.
fn substitute(expression: &mut IdedExpr, name: &str, pair: &str, position: i64) {
    if identifier(expression) == Some(name) {
        let part = |expr| IdedExpr { id: expression.id, expr };
        let operands =
            vec![part(Expr::Ident(pair.to_owned())), part(Expr::Literal(LiteralValue::Int(position.into())))];
        expression.expr = Expr::Call(CallExpr { func_name: operators::INDEX.to_owned(), target: None, args: operands });
        return;
    }
    if let Expr::Comprehension(each) = &mut expression.expr {
        substitute(&mut each.iter_range, name, pair, position);
        substitute(&mut each.accu_init, name, pair, position);
        // Inside, the name may be that of another variable.
        if each.accu_var != name {
            substitute(&mut each.result, name, pair, position);
            if each.iter_var != name && each.iter_var2.as_deref() != Some(name) {
                substitute(&mut each.loop_cond, name, pair, position);
                substitute(&mut each.loop_step, name, pair, position);
            }
        }
        return;
    }
    for part in parts_mut(&mut expression.expr) {
        substitute(part, name, pair, position);
    }
}

/// The name of a namespaced function or type: identifiers with dots between them.
pub(super) fn qualified_name(expression: &IdedExpr) -> Option<String> {
    match &expression.expr {
        Expr::Ident(name) => Some(name.clone()),
        Expr::Select(SelectExpr { operand, field, test: false }) => {
            Some(format!("{}.{field}", qualified_name(operand)?))
        }
        _ => None,
    }
}
