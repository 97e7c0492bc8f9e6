//! What evaluating an expression costs at worst, in the API server's units: about one per step of the evaluation.
//!
//! The rules are those of cel-go's estimator and of Kubernetes' own one, operator by operator. They have quirks, which
//! decide which CRDs are accepted: numbers that a schema declares count as empty, and so do the keys of maps; what a
//! macro has computed is bounded where the macro keeps track of it, and unbounded elsewhere.

mod calls;
mod size;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use kube_cel::cel::{
    IdedExpr,
    common::ast::{ComprehensionExpr, EntryExpr, Expr, LiteralValue},
};

use self::size::{Elements, Size};
use super::{declared::Declared, functions, macros::qualified_name, types::Type, typing::Typing};

const SELECTION: u64 = 1;
const LIST: u64 = 10;
const MAP: u64 = 30;
const OBJECT: u64 = 40;

/// What an expression costs at worst. `root` declares the variables of rules.
pub(super) fn cost(expression: &IdedExpr, typing: &Typing, root: Option<&Declared>) -> u64 {
    let mut estimate = Estimate {
        typing,
        root,
        paths: HashMap::new(),
        locals: Vec::new(),
        sizes: HashMap::new(),
        elements: HashMap::new(),
    };
    estimate.cost(expression)
}

/// How an expression is reached from a variable: names of fields and `@items`, `@values`, `@keys`.
type Steps = Vec<String>;

/// A variable of a macro.
struct Local {
    name: String,
    path: Steps,
    size: Option<Size>,
    elements: Option<Elements>,
}

struct Estimate<'e> {
    typing: &'e Typing,
    root: Option<&'e Declared>,
    paths: HashMap<u64, Steps>,
    locals: Vec<Local>,
    /// The sizes of results.
    sizes: HashMap<u64, Size>,
    /// The sizes of what is in lists and maps.
    elements: HashMap<u64, Elements>,
}

impl Estimate<'_> {
    fn cost(&mut self, expression: &IdedExpr) -> u64 {
        match &expression.expr {
            Expr::Literal(_) | Expr::Unspecified => 0,
            Expr::Ident(name) => {
                let path = self.local(name).map_or_else(|| vec![name.clone()], |local| local.path.clone());
                self.paths.insert(expression.id, path);
                SELECTION
            }
            Expr::Select(select) if select.test => self.cost(&select.operand),
            // The whole name of a type is one identifier.
            Expr::Select(_) if type_name(expression).is_some() => {
                self.paths.insert(expression.id, type_name(expression).into_iter().collect());
                SELECTION
            }
            Expr::Select(select) => {
                let cost = self.cost(&select.operand);
                let counts = match self.typing.type_of(&select.operand) {
                    Type::Map(..) | Type::Object(_) | Type::Parameter(_) => true,
                    other @ Type::Library(_) => !other.is_opaque(),
                    _ => false,
                };
                self.step(expression.id, &select.operand, &select.field);
                cost.saturating_add(if counts { SELECTION } else { 0 })
            }
            Expr::Call(_) => self.call(expression),
            Expr::List(list) => {
                let mut items = Elements::none(true);
                let mut cost = LIST;
                for (index, element) in list.elements.iter().enumerate() {
                    cost = cost.saturating_add(self.cost(element));
                    items.include(Size::fixed(1), self.size_or_unknown(element), index == 0);
                }
                self.elements.insert(expression.id, items);
                cost
            }
            Expr::Map(map) => {
                let mut entries = Elements::none(false);
                let mut cost = MAP;
                for (index, entry) in map.entries.iter().enumerate() {
                    let EntryExpr::MapEntry(entry) = &entry.expr else { continue };
                    cost = cost.saturating_add(self.cost(&entry.key)).saturating_add(self.cost(&entry.value));
                    let (key, value) = (self.size_or_unknown(&entry.key), self.size_or_unknown(&entry.value));
                    entries.include(key, value, index == 0);
                }
                self.elements.insert(expression.id, entries);
                cost
            }
            Expr::Struct(object) => object.entries.iter().fold(OBJECT, |cost, entry| match &entry.expr {
                EntryExpr::StructField(field) => cost.saturating_add(self.cost(&field.value)),
                EntryExpr::MapEntry(_) => cost,
            }),
            Expr::Comprehension(each) if is_binding(each) => {
                let cost = self.cost(&each.iter_range).saturating_add(self.cost(&each.accu_init));
                self.push_value(&each.accu_var, &each.accu_init);
                let result = self.cost(&each.result);
                self.locals.pop();
                self.copy_sizes(expression.id, &each.result);
                cost.saturating_add(result)
            }
            Expr::Comprehension(each) => self.comprehension(expression.id, each),
        }
    }

    fn comprehension(&mut self, id: u64, each: &ComprehensionExpr) -> u64 {
        let before = self.cost(&each.iter_range).saturating_add(self.cost(&each.accu_init));
        let outer = self.locals.len();
        self.push_value(&each.accu_var, &each.accu_init);
        self.push_variables(each);
        let round = self.cost(&each.loop_cond).saturating_add(self.cost(&each.loop_step));
        self.locals.truncate(outer + 1);
        let result = self.cost(&each.result);
        self.locals.truncate(outer);
        let rounds = self.size_or_unknown(&each.iter_range);
        match &each.accu_init.expr {
            Expr::Literal(_) => {
                let size = self.size(&each.accu_init);
                self.keep_size(id, size);
            }
            Expr::List(_) | Expr::Map(_) => {
                self.sizes.insert(id, rounds);
                if let Some(elements) = self.elements_of(&each.loop_step) {
                    self.elements.insert(id, elements);
                }
            }
            _ => {}
        }
        before.saturating_add(result).saturating_add(rounds.max.saturating_mul(round))
    }

    /// The variables that take the items of a range one after the other.
    fn push_variables(&mut self, each: &ComprehensionExpr) {
        let elements = self.elements_of(&each.iter_range);
        let is_list = elements.map_or_else(
            || matches!(self.typing.type_of(&each.iter_range), Type::List(_)),
            |elements| elements.are_of_list,
        );
        let path = self.path(&each.iter_range);
        let (keys, values) = (elements.map(|elements| elements.key), elements.map(|elements| elements.value));
        let mut push = |name: &str, step: &str, size: Option<Size>| {
            let mut path = path.clone();
            path.push(step.to_owned());
            self.locals.push(Local { name: name.to_owned(), path, size, elements: None });
        };
        match (&each.iter_var2, is_list) {
            (None, true) => push(&each.iter_var, "@items", values),
            (None, false) => push(&each.iter_var, "@keys", keys),
            (Some(second), true) => {
                push(&each.iter_var, "@indices", keys);
                push(second, "@items", values);
            }
            (Some(second), false) => {
                push(&each.iter_var, "@keys", keys);
                push(second, "@values", values);
            }
        }
    }

    /// A variable that has the value of an expression.
    fn push_value(&mut self, name: &str, value: &IdedExpr) {
        let path = self.path(value);
        let elements = self.elements_of(value);
        let size = self.size(value);
        self.locals.push(Local { name: name.to_owned(), path, size, elements });
    }

    fn local(&self, name: &str) -> Option<&Local> {
        self.locals.iter().rev().find(|local| local.name == name)
    }

    fn path(&self, expression: &IdedExpr) -> Steps {
        if let Expr::Ident(name) = &expression.expr
            && let Some(local) = self.local(name)
        {
            return local.path.clone();
        }
        self.paths.get(&expression.id).cloned().unwrap_or_default()
    }

    /// An expression is reached through another one.
    fn step(&mut self, id: u64, operand: &IdedExpr, step: &str) {
        let mut path = self.path(operand);
        path.push(step.to_owned());
        self.paths.insert(id, path);
    }

    fn keep_size(&mut self, id: u64, size: Option<Size>) {
        if let Some(size) = size {
            self.sizes.insert(id, size);
        }
    }

    fn copy_sizes(&mut self, id: u64, from: &IdedExpr) {
        let size = self.size(from);
        self.keep_size(id, size);
        if let Some(elements) = self.elements_of(from) {
            self.elements.insert(id, elements);
        }
    }

    /// The size of a value, where it is known.
    fn size(&mut self, expression: &IdedExpr) -> Option<Size> {
        if let Some(size) = self.sizes.get(&expression.id) {
            return Some(*size);
        }
        if let Some(size) = written_size(expression) {
            return Some(size);
        }
        if let Some(size) = self.declared_size(&self.path(expression)) {
            self.sizes.insert(expression.id, size);
            return Some(size);
        }
        if self.typing.type_of(expression).is_of_fixed_size() {
            return Some(Size::fixed(1));
        }
        match &expression.expr {
            Expr::Ident(name) => self.local(name)?.size,
            _ => None,
        }
    }

    fn size_or_unknown(&mut self, expression: &IdedExpr) -> Size {
        self.size(expression).unwrap_or(Size::UNKNOWN)
    }

    /// The sizes of what is in a list or map, where they are known.
    fn elements_of(&self, expression: &IdedExpr) -> Option<Elements> {
        let known = self.elements.get(&expression.id).copied();
        known.or_else(|| match &expression.expr {
            Expr::Ident(name) => self.local(name)?.elements,
            _ => None,
        })
    }

    /// The largest size that the schema allows at the end of a path. QUIRK: its first step counts as the root whatever
    /// it is, so that the names of types have a size, and so has what an optional old value gives
    /// (`estimate::tests::paths_that_begin_nowhere_begin_at_the_root`).
    fn declared_size(&self, path: &[String]) -> Option<Size> {
        let (_, steps) = path.split_first()?;
        let mut declared = self.root?;
        for step in steps {
            declared = match step.as_str() {
                "@items" | "@values" => declared.elements()?,
                "@keys" => declared.keys()?,
                field => declared.field(field)?,
            };
        }
        Some(Size { min: 0, max: declared.elements_max })
    }
}

/// The name of a type, where it has a namespace.
fn type_name(expression: &IdedExpr) -> Option<String> {
    qualified_name(expression).filter(|name| functions::type_named(name).is_some())
}

/// Whether a loop has no rounds and gives a name to a value.
fn is_binding(each: &ComprehensionExpr) -> bool {
    let has_no_rounds = matches!(&each.iter_range.expr, Expr::List(list) if list.elements.is_empty());
    let ends = matches!(&each.loop_cond.expr, Expr::Literal(LiteralValue::Boolean(goes_on)) if !goes_on.inner());
    has_no_rounds && ends
}

/// The size of what stands in the expression itself.
fn written_size(expression: &IdedExpr) -> Option<Size> {
    let size = match &expression.expr {
        Expr::Literal(LiteralValue::String(text)) => text.inner().chars().count(),
        Expr::Literal(LiteralValue::Bytes(bytes)) => bytes.inner().len(),
        Expr::Literal(_) => 1,
        Expr::List(list) => list.elements.len(),
        Expr::Map(map) => map.entries.len(),
        _ => return None,
    };
    Some(Size::fixed(size as u64))
}
