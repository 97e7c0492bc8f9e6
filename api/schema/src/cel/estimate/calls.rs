//! What calls cost, function by function.

use kube_cel::cel::{
    IdedExpr,
    common::ast::{CallExpr, Expr, LiteralValue},
};

use super::{
    Estimate,
    size::{EXPRESSION, Elements, Size, TRAVERSAL, scaled},
};
use crate::cel::{types::Type, typing::Resolved};

/// The longest name of a format, and the longest of their regular expressions.
const FORMAT_NAME_MAX: u64 = 64;
const FORMAT_EXPRESSION_MAX: f64 = 128.0;
/// What a check with an authorizer costs.
const AUTHORIZATION: u64 = 350_000;
/// Bytes of an address.
const ADDRESS_MAX: Size = Size { min: 4, max: 16 };

/// An operand that was looked at.
struct Operand<'e> {
    expression: &'e IdedExpr,
    size: Option<Size>,
    path: Vec<String>,
}

impl Operand<'_> {
    fn size(&self) -> Size {
        self.size.unwrap_or(Size::UNKNOWN)
    }
}

/// The operands of a call and what they cost together.
struct Call<'e> {
    target: Option<Operand<'e>>,
    args: Vec<Operand<'e>>,
    arg_costs: Vec<u64>,
}

impl<'e> Call<'e> {
    /// The target, and an argument.
    fn with_target(&self, arg: usize) -> Option<(&Operand<'e>, &Operand<'e>)> {
        Some((self.target.as_ref()?, self.args.get(arg)?))
    }
}

/// What a call costs without its operands, and the size of its result.
type Answer = Option<(u64, Option<Size>)>;

impl Estimate<'_> {
    pub(super) fn call(&mut self, expression: &IdedExpr) -> u64 {
        let Expr::Call(call) = &expression.expr else { return 0 };
        if let ("dyn", [argument]) = (call.func_name.as_str(), call.args.as_slice()) {
            let cost = self.cost(argument).saturating_add(1);
            self.copy_sizes(expression.id, argument);
            return cost;
        }
        let (mut args, mut arg_costs) = (Vec::new(), Vec::new());
        for argument in &call.args {
            arg_costs.push(self.cost(argument));
            args.push(self.operand(argument));
        }
        let typing = self.typing;
        let Some(resolved) = typing.call(expression).filter(|resolved| !resolved.overloads.is_empty()) else {
            return 0;
        };
        let (target, target_cost) = self.target(call, resolved);
        let operands = Call { target, args, arg_costs };
        let mut cost = 0;
        let mut result: Option<Size> = None;
        for overload in &resolved.overloads {
            let (own, size) = self.overload(expression, resolved.function, overload, &operands);
            cost = cost.max(own);
            if let Some(size) = size {
                result = Some(result.map_or(size, |before| before.or(size)));
            }
            if let (Some(step), Some(container)) = (indexed(overload), operands.args.first()) {
                result = self.elements_of(container.expression).map(|elements| elements.value);
                self.step(expression.id, container.expression, step);
            }
            result = result.or_else(|| self.size(expression));
        }
        self.keep_size(expression.id, result);
        target_cost.saturating_add(cost)
    }

    fn target<'c>(&mut self, call: &'c CallExpr, resolved: &Resolved) -> (Option<Operand<'c>>, u64) {
        match call.target.as_deref().filter(|_| resolved.is_method) {
            Some(target) => {
                let cost = self.cost(target);
                (Some(self.operand(target)), cost)
            }
            None => (None, 0),
        }
    }

    fn operand<'c>(&mut self, expression: &'c IdedExpr) -> Operand<'c> {
        let size = self.size(expression);
        // What a macro accumulates is no field.
        let path = Some(self.path(expression)).filter(|path| path.first().is_none_or(|first| first != "@result"));
        Operand { expression, size, path: path.unwrap_or_default() }
    }

    /// What one way to call a function costs with its arguments, and the size of its result.
    fn overload(
        &mut self,
        expression: &IdedExpr,
        function: &str,
        overload: &str,
        call: &Call<'_>,
    ) -> (u64, Option<Size>) {
        let all = call.arg_costs.iter().fold(0_u64, |sum, cost| sum.saturating_add(*cost));
        match (overload, call.arg_costs.as_slice(), call.args.as_slice()) {
            ("logical_and" | "logical_or", _, _) => return (all, None),
            ("conditional", [condition, then, otherwise], [_, if_true, if_false]) => {
                let size = if_true.size().or(if_false.size());
                let (left, right) = (self.elements_of(if_true.expression), self.elements_of(if_false.expression));
                self.keep_joined(expression, left, right);
                return (condition.saturating_add(*then.max(otherwise)), Some(size));
            }
            ("add_list" | "add_string" | "add_bytes", _, [left, right]) => {
                let (of_left, of_right) = (self.elements_of(left.expression), self.elements_of(right.expression));
                self.keep_joined(expression, of_left, of_right);
            }
            _ => {}
        }
        let answer = of_sets(overload, call)
            .or_else(|| self.of_kubernetes(function, overload, call))
            .or_else(|| of_language(overload, call));
        let (cost, size) = answer.unwrap_or((1, None));
        (cost.saturating_add(all), size)
    }

    fn keep_joined(&mut self, expression: &IdedExpr, left: Option<Elements>, right: Option<Elements>) {
        if let (Some(left), Some(right)) = (left, right) {
            self.elements.insert(expression.id, left.or(right));
        }
    }

    /// The functions of Kubernetes' libraries.
    fn of_kubernetes(&self, function: &str, overload: &str, call: &Call<'_>) -> Answer {
        let first = call.args.first();
        Some(match function {
            "check" => (AUTHORIZATION, None),
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => {
                let list = call.target.as_ref()?;
                match self.items(list) {
                    Some((items, Type::String | Type::Bytes)) => {
                        (list.size().max.saturating_mul(items.traversal().saturating_add(1)), None)
                    }
                    Some(_) => (list.size().max, None),
                    None => (list.size().traversal(), None),
                }
            }
            "url" => (first?.size().traversal(), Some(first?.size())),
            "lowerAscii" | "upperAscii" | "substring" | "trim" => {
                let text = call.target.as_ref()?.size();
                (text.traversal(), Some(text))
            }
            "replace" => {
                let (text, pattern) = call.with_target(0)?;
                let replacement = call.args.get(1)?.size();
                let result = replaced(text.size(), pattern.size(), replacement);
                (scaled(text.size().max, 2.0 * TRAVERSAL), Some(result))
            }
            "split" => {
                let text = call.target.as_ref()?.size();
                let limit = call.args.get(1).and_then(|limit| match &limit.expression.expr {
                    // QUIRK: a limit of -1, which means none, counts as the largest number.
                    Expr::Literal(LiteralValue::Int(limit)) => Some(*limit.inner() as u64),
                    _ => None,
                });
                (scaled(text.max, 2.0 * TRAVERSAL), Some(Size::up_to(limit.unwrap_or(text.max))))
            }
            "join" => {
                let list = call.target.as_ref()?;
                let items = self.items(list).map_or(Size::fixed(0), |(items, _)| list.size().times(items));
                let separators = first.map_or(Size::fixed(0), |separator| {
                    let Size { min, max } = list.size();
                    separator.size().times(Size { min: min.saturating_sub(1), max: max.saturating_sub(1) })
                });
                let text = items.plus(separators);
                (text.traversal(), Some(text))
            }
            "find" | "findAll" => {
                let (text, pattern) = call.with_target(0)?;
                (matching(text.size(), pattern.size()), Some(Size::up_to(text.size().max)))
            }
            "ip" if overload == "cidr_ip" => (1, None),
            "cidr" | "ip" | "isIP" | "isCIDR" | "quantity" | "isQuantity" | "semver" | "isSemver" => {
                (first?.size().traversal(), None)
            }
            "fieldSelector" | "labelSelector" => (scaled(first?.size().max, TRAVERSAL), None),
            "ip.isCanonical" => (scaled(first?.size().max, 2.0 * TRAVERSAL), None),
            "containsIP" | "containsCIDR" => {
                let mut cost = ADDRESS_MAX.plus(ADDRESS_MAX).traversal();
                if function == "containsCIDR" {
                    cost += ADDRESS_MAX.traversal() + 1;
                }
                if overload.ends_with("_string") {
                    cost = cost.saturating_add(first?.size().traversal());
                }
                (cost, None)
            }
            "validate" => (scaled(first?.size().traversal(), FORMAT_EXPRESSION_MAX * EXPRESSION), None),
            "_==_" => return self.equality(call),
            _ => return None,
        })
    }

    /// Values of libraries are compared at once.
    fn equality(&self, call: &Call<'_>) -> Answer {
        let [left, right] = call.args.as_slice() else { return None };
        let [of_left, of_right] = [left, right].map(|operand| self.typing.type_of(operand.expression));
        match of_left {
            _ if of_left != of_right => None,
            Type::Library("kubernetes.NamedFormat") => Some((scaled(FORMAT_NAME_MAX, TRAVERSAL), None)),
            Type::Library("kubernetes.URL") => Some((right.size.unwrap_or(Size::fixed(1)).traversal(), None)),
            Type::Library(_) => Some((1, None)),
            _ => None,
        }
    }

    /// The size and type of the items of a list; `None` where the operand is none.
    fn items(&self, list: &Operand<'_>) -> Option<(Size, Type)> {
        let Type::List(items) = self.typing.type_of(list.expression) else { return None };
        let mut path = list.path.clone();
        let size = if path.is_empty() {
            None
        } else {
            path.push("@items".to_owned());
            self.declared_size(&path)
        };
        Some((size.unwrap_or(Size::UNKNOWN), (**items).clone()))
    }
}

/// The step that an index takes.
fn indexed(overload: &str) -> Option<&'static str> {
    match overload {
        "index_list" => Some("@items"),
        "index_map" => Some("@values"),
        _ => None,
    }
}

/// Lists as sets are compared item by item.
fn of_sets(overload: &str, call: &Call<'_>) -> Answer {
    let factor = match overload {
        "list_sets_contains_list" | "list_sets_intersects_list" => 1.0,
        "list_sets_equivalent_list" => 2.0,
        _ => return None,
    };
    let [left, right] = call.args.as_slice() else { return None };
    Some((scaled(left.size().times(right.size()).max, factor).saturating_add(1), None))
}

/// The functions and operators of the language.
fn of_language(overload: &str, call: &Call<'_>) -> Answer {
    let first = call.args.first().map(Operand::size);
    Some(match overload {
        "string_format" => (call.target.as_ref()?.size().traversal(), None),
        "string_to_bytes" => {
            let Size { min, max } = first?;
            // QUIRK: cel-go lets this overflow.
            (first?.traversal(), Some(Size { min, max: max.wrapping_mul(4) }))
        }
        "bytes_to_string" => {
            let Size { min, max } = first?;
            (first?.traversal(), Some(Size { min: min / 4, max }))
        }
        "strings_quote" => {
            let Size { min, max } = first?;
            let max = max.wrapping_mul(2).wrapping_add(2);
            (first?.traversal(), Some(Size { min: min.wrapping_add(2), max }))
        }
        "starts_with_string" | "ends_with_string" => (first?.traversal(), None),
        "in_list" => (scaled(call.args.get(1)?.size().max, 1.0), None),
        "matches_string" => {
            let (text, pattern) = call.with_target(0)?;
            (matching(text.size(), pattern.size()), None)
        }
        "contains_string" => {
            let (text, part) = call.with_target(0)?;
            (text.size().traversal().saturating_mul(part.size().traversal()), None)
        }
        "add_string" | "add_bytes" | "add_list" => {
            let size = first?.plus(call.args.get(1)?.size());
            (if overload == "add_list" { 1 } else { size.traversal() }, Some(size))
        }
        "equals" | "not_equals" => (comparison(call)?, None),
        _ => {
            let (operator, operands) = overload.rsplit_once('_')?;
            let compares = matches!(operator, "less" | "less_equals" | "greater" | "greater_equals");
            if !compares || !matches!(operands, "string" | "bytes") {
                return None;
            }
            (comparison(call)?, None)
        }
    })
}

/// What it costs to compare two values: the smaller one is gone over.
fn comparison(call: &Call<'_>) -> Option<u64> {
    let [left, right] = call.args.as_slice() else { return None };
    Some(scaled(left.size().max.min(right.size().max), TRAVERSAL))
}

/// What it costs to match a text with a regular expression. An empty text is not matched for nothing.
fn matching(text: Size, pattern: Size) -> u64 {
    text.plus(Size::fixed(1)).traversal().saturating_mul(scaled(pattern.max, EXPRESSION))
}

/// The size of a text after its parts were replaced.
fn replaced(text: Size, pattern: Size, replacement: Size) -> Size {
    let (mut count, mut kept) = (Size::fixed(0), Size::fixed(0));
    let times = |text: u64, pattern: u64| (text as f64 / pattern as f64).ceil() as u64;
    if pattern.min == 0 {
        // The replacement stands around each letter.
        count.max = text.max.saturating_add(1);
        kept.max = text.max;
    } else if replacement.max <= pattern.min {
        kept.max = text.max;
    } else {
        count.max = times(text.max, pattern.min);
    }
    if pattern.max == 0 {
        count.min = text.min.saturating_add(1);
        kept.min = text.min;
    } else if pattern.max <= replacement.min {
        kept.min = text.min;
    } else {
        count.min = times(text.min, pattern.max);
    }
    count.times(replacement).plus(kept)
}
