//! Which fields and types the rules of a type name, as far as Rust types show them: those of its own fields, and through constants those of
//! the types of these.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::Type;

use super::{Literal, Node, Operator, functions, parse};
use crate::{
    marker::{Keyword, Marker, Markers, Rule},
    model::{Body, Field, Item},
    report::{Report, respanned},
    shape::{Shape, peel, type_name},
    words::nearest,
};

/// What an expression gives, as far as it is known.
#[derive(Clone, Copy)]
enum Value<'a> {
    /// The object with the fields of the type that the rules stand on.
    Own,
    /// JSON of a Rust type.
    Typed(&'a Type),
    Plain(Kind),
    Unknown,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Boolean,
    Number,
    Text,
    List,
    Map,
}

impl Kind {
    fn words(self) -> &'static str {
        match self {
            Kind::Boolean => "a boolean",
            Kind::Number => "a number",
            Kind::Text => "a text",
            Kind::List => "a list",
            Kind::Map => "a map",
        }
    }
}

/// Types, which stand for no value of the object.
const TYPES: [&str; 15] = [
    "bool",
    "bytes",
    "double",
    "duration",
    "dyn",
    "google",
    "int",
    "list",
    "map",
    "null_type",
    "optional_type",
    "string",
    "timestamp",
    "type",
    "uint",
];

/// Whether a name stands for a type or a namespace of functions.
fn is_known(name: &str) -> bool {
    TYPES.contains(&name) || functions::is_namespace(name)
}

/// Methods that give a boolean, whatever they are asked of.
const PREDICATES: [&str; 7] = ["all", "exists", "exists_one", "existsOne", "startsWith", "endsWith", "hasValue"];

/// Notes what is wrong with the rules of a type and of its fields. Gives constants that fail to compile where the type of a field has no
/// field that a rule names.
pub(crate) fn check(item: &Item<'_>, report: &Report) -> TokenStream {
    let mut late = TokenStream::new();
    let own = match &item.body {
        Body::Struct(fields) if !item.markers.may_have_others() && !fields.iter().any(|field| field.serde.flatten) => {
            Value::Own
        }
        Body::Newtype(field) => of_field(field, &item.markers),
        _ => Value::Unknown,
    };
    check_all(item, &item.markers, own, report, &mut late);
    for field in item.all_fields() {
        check_all(item, &field.markers, of_field(field, &field.markers), report, &mut late);
    }
    late
}

fn check_all<'a>(item: &'a Item<'_>, markers: &'a Markers, of: Value<'a>, report: &Report, late: &mut TokenStream) {
    markers.lists().for_each(|rules| check_each(item, rules, of, report, late));
}

fn check_each<'a>(item: &'a Item<'_>, rules: &'a [Marker], of: Value<'a>, report: &Report, late: &mut TokenStream) {
    for marker in rules {
        match &marker.keyword {
            Keyword::Validate(rule) => check_rule(item, marker.word.span(), rule, of, report, late),
            Keyword::Items(inner) => {
                let items = item_of(of);
                check_each(item, inner, items, report, late);
            }
            _ => {}
        }
    }
}

fn check_rule<'a>(
    item: &'a Item<'_>,
    span: Span,
    rule: &'a Rule,
    of: Value<'a>,
    report: &Report,
    late: &mut TokenStream,
) {
    // What has another name in the versions before is compared with the names there, where older versions are made.
    let of = if rule.versions.until.is_some() { Value::Unknown } else { of };
    let wanted = [(Some(&rule.expression), Kind::Boolean), (rule.message_expression.as_ref(), Kind::Text)];
    for (text, wanted) in wanted {
        let Some(text) = text else { continue };
        let node = match parse(text) {
            Ok(node) => node,
            Err(mistake) => {
                report.at(span, mistake.shown(text));
                continue;
            }
        };
        let mut reader = Reader::new(item, of);
        if rule.optional_old_self.is_some() {
            reader.names.push(("oldSelf", Value::Unknown));
        }
        let value = reader.value(&node);
        if let Some(found) = kind(value).filter(|found| *found != wanted) {
            let part = if wanted == Kind::Boolean { "rule" } else { "message_expression" };
            reader.wrong(format!("`{part}` needs {}, but this is {}", wanted.words(), found.words()));
        }
        reader.mistakes.into_iter().for_each(|mistake| report.at(span, mistake));
        for (type_, name) in reader.late {
            let message = format!(
                "the rule names `{name}`, but `{}` has no such field in the JSON of the newest version",
                type_name(type_)
            );
            let krate = &item.krate;
            let check = respanned(quote!(#krate::declare::needs_member::<#type_>(#name, #message)), span);
            late.extend(quote_spanned!(span=> const _: () = #check;));
        }
    }
}

/// What the JSON of a field is; unknown where a marker says otherwise than its type.
fn of_field<'a>(field: &'a Field<'_>, markers: &Markers) -> Value<'a> {
    let has_format = markers.lists().flatten().any(|marker| matches!(marker.keyword, Keyword::Format(_)));
    if markers.may_have_others() || markers.is_foreign() || has_format {
        return Value::Unknown;
    }
    Value::Typed(field.peeled.inner)
}

fn shape(value: Value<'_>) -> Option<Shape<'_>> {
    match value {
        Value::Typed(type_) => Some(peel(type_).shape),
        _ => None,
    }
}

fn kind(value: Value<'_>) -> Option<Kind> {
    match value {
        Value::Plain(kind) => Some(kind),
        Value::Own => Some(Kind::Map),
        Value::Unknown => None,
        Value::Typed(type_) => match peel(type_).shape {
            Shape::Boolean => Some(Kind::Boolean),
            Shape::Integer(_) | Shape::Number => Some(Kind::Number),
            Shape::String => Some(Kind::Text),
            Shape::Array(_) => Some(Kind::List),
            Shape::Map(_) => Some(Kind::Map),
            Shape::Formatted | Shape::IntOrString | Shape::Anything | Shape::Named => None,
        },
    }
}

/// The items of a list, or the values of a map.
fn item_of(value: Value<'_>) -> Value<'_> {
    match shape(value) {
        Some(Shape::Array(item) | Shape::Map(item)) => Value::Typed(peel(item).inner),
        _ => Value::Unknown,
    }
}

/// Reads one expression.
struct Reader<'a> {
    item: &'a Item<'a>,
    own: Value<'a>,
    /// Names in the expression, those that were bound last at the end.
    names: Vec<(&'a str, Value<'a>)>,
    mistakes: Vec<String>,
    /// Fields that types of others must have.
    late: Vec<(&'a Type, String)>,
}

impl<'a> Reader<'a> {
    fn new(item: &'a Item<'_>, own: Value<'a>) -> Self {
        Self { item, own, names: Vec::new(), mistakes: Vec::new(), late: Vec::new() }
    }

    fn wrong(&mut self, mistake: String) {
        if !self.mistakes.contains(&mistake) {
            self.mistakes.push(mistake);
        }
    }

    fn value<'t: 'a>(&mut self, node: &Node<'t>) -> Value<'a> {
        match node {
            Node::Literal(literal) => match literal {
                Literal::Number => Value::Plain(Kind::Number),
                Literal::Text => Value::Plain(Kind::Text),
                Literal::Boolean => Value::Plain(Kind::Boolean),
                Literal::Bytes | Literal::Null => Value::Unknown,
            },
            Node::Name(_, name) => self.named(name),
            Node::Member { of, name, is_optional, .. } => {
                let of = self.value(of);
                let member = self.member(of, name);
                if *is_optional { Value::Unknown } else { member }
            }
            Node::Index(of, index) => {
                let (of, _) = (self.value(of), self.value(index));
                item_of(of)
            }
            Node::Call { on, name, arguments, .. } => self.call(on.as_deref(), name, arguments),
            Node::Unary(operator, operand) => {
                let wanted = if *operator == Operator::Not { Kind::Boolean } else { Kind::Number };
                let value = self.value(operand);
                self.needs(value, wanted, if wanted == Kind::Boolean { "!" } else { "-" });
                kind(value).map_or(Value::Unknown, Value::Plain)
            }
            Node::Binary { operator, left, right, .. } => {
                let (left, right) = (self.value(left), self.value(right));
                self.binary(*operator, left, right)
            }
            Node::Conditional(parts) => {
                let [condition, one, other] = &**parts;
                let condition = self.value(condition);
                self.needs(condition, Kind::Boolean, "?");
                let (one, other) = (self.value(one), self.value(other));
                match (kind(one), kind(other)) {
                    (Some(one), Some(other)) if one == other => Value::Plain(one),
                    (Some(one), Some(other)) => {
                        self.wrong(format!("`? :` gives {} or {}", one.words(), other.words()));
                        Value::Unknown
                    }
                    _ => Value::Unknown,
                }
            }
            Node::Collection { parts, is_list } => {
                for part in parts {
                    self.value(part);
                }
                Value::Plain(if *is_list { Kind::List } else { Kind::Map })
            }
        }
    }

    fn named(&mut self, name: &str) -> Value<'a> {
        if let Some((_, value)) = self.names.iter().rev().find(|(known, _)| *known == name) {
            return *value;
        }
        if matches!(name, "self" | "oldSelf") {
            return self.own;
        }
        if !is_known(name) {
            let mut names: Vec<&str> = self.names.iter().map(|(name, _)| *name).collect();
            names.extend(["self", "oldSelf"]);
            let hint = nearest(name, &names).map(|name| format!("; did you mean `{name}`?"));
            self.wrong(format!("a rule knows nothing by the name of `{name}`{}", hint.unwrap_or_default()));
        }
        Value::Unknown
    }

    fn member(&mut self, of: Value<'a>, escaped: &str) -> Value<'a> {
        let name = unescaped(escaped);
        if let Value::Own = of {
            return self.own_member(&name);
        }
        let Value::Typed(type_) = of else { return Value::Unknown };
        match peel(type_).shape {
            Shape::Map(value) => Value::Typed(peel(value).inner),
            Shape::Named if !self.item.is_generic(type_) => {
                if !self.late.iter().any(|(known, other)| *known == type_ && *other == name) {
                    self.late.push((type_, name));
                }
                Value::Unknown
            }
            _ => {
                if let Some(found) = kind(of) {
                    self.wrong(format!("`.{escaped}` is read of {}, which has no fields", found.words()));
                }
                Value::Unknown
            }
        }
    }

    fn own_member(&mut self, name: &str) -> Value<'a> {
        let item = self.item;
        if let Some(field) = item.fields().iter().find(|field| field.name == name) {
            return of_field(field, &field.markers);
        }
        // Of what was removed another check speaks.
        let is_there = ["apiVersion", "kind", "metadata"].contains(&name)
            || item.markers.removed.iter().any(|removed| removed.name == name);
        if !is_there {
            let names: Vec<&str> = item.fields().iter().map(|field| field.name.as_str()).collect();
            let hint = nearest(name, &names).map(|name| format!("; did you mean `{name}`?"));
            let hint = hint.unwrap_or_default();
            self.wrong(format!("the rule names `{name}`, but `{}` has no such field in JSON{hint}", item.ident));
        }
        Value::Unknown
    }

    fn call<'t: 'a>(&mut self, on: Option<&Node<'t>>, name: &str, arguments: &[Node<'t>]) -> Value<'a> {
        let unknown = match on {
            Some(Node::Name(_, namespace)) if self.is_namespace(namespace) => {
                functions::unknown_function(&format!("{namespace}.{name}"))
            }
            Some(_) => functions::unknown_method(name),
            None => functions::unknown_function(name),
        };
        // A macro's first argument is a name that it binds: `list.all(item, …)`. What no function is may be a macro misspelt.
        let binds = unknown.is_some() || functions::binds_names(name);
        if let Some(mistake) = unknown {
            self.wrong(mistake);
        }
        let of = on.map(|on| self.value(on));
        let known = self.names.len();
        let mut rest = arguments;
        if let Some(of) = of {
            let mut bound = Vec::new();
            while let Some((Node::Name(_, name), after)) = rest.split_first()
                && binds
                && !matches!(*name, "self" | "oldSelf")
                && !after.is_empty()
                && !self.names.iter().any(|(known, _)| known == name)
            {
                bound.push(*name);
                rest = after;
            }
            let is_map = kind(of) == Some(Kind::Map);
            let one = match bound.len() {
                1 if is_map => Value::Plain(Kind::Text),
                1 => item_of(of),
                _ => Value::Unknown,
            };
            self.names.extend(bound.into_iter().map(|name| (name, one)));
        }
        let values: Vec<Value<'a>> = rest.iter().map(|argument| self.value(argument)).collect();
        self.names.truncate(known);
        match (name, of) {
            ("has", None) => Value::Plain(Kind::Boolean),
            ("size", _) => {
                let measured = of.or(values.first().copied()).unwrap_or(Value::Unknown);
                if let Some(found @ (Kind::Number | Kind::Boolean)) = kind(measured) {
                    self.wrong(format!("`size` is asked of {}", found.words()));
                }
                Value::Plain(Kind::Number)
            }
            ("int" | "uint" | "double", None) => Value::Plain(Kind::Number),
            ("string", None) => Value::Plain(Kind::Text),
            ("filter", Some(of)) => of,
            (name, Some(of)) if PREDICATES.contains(&name) => {
                let wanted = matches!(name, "startsWith" | "endsWith").then_some(Kind::Text);
                if let (Some(wanted), Some(found)) = (wanted, kind(of))
                    && wanted != found
                {
                    self.wrong(format!("`{name}` is asked of {}", found.words()));
                }
                Value::Plain(Kind::Boolean)
            }
            _ => Value::Unknown,
        }
    }

    /// Whether a name stands for a namespace of functions here.
    fn is_namespace(&self, name: &str) -> bool {
        functions::is_namespace(name) && !self.names.iter().any(|(bound, _)| *bound == name)
    }

    fn binary(&mut self, operator: Operator, left: Value<'a>, right: Value<'a>) -> Value<'a> {
        let kinds = (kind(left), kind(right));
        let differ = match kinds {
            (Some(left), Some(right)) if left != right => Some((left.words(), right.words())),
            _ => None,
        };
        match operator {
            Operator::Or | Operator::And => {
                let sign = if operator == Operator::Or { "||" } else { "&&" };
                for operand in [left, right] {
                    self.needs(operand, Kind::Boolean, sign);
                }
                Value::Plain(Kind::Boolean)
            }
            Operator::Equality | Operator::Order => {
                if let Some((left, right)) = differ {
                    self.wrong(format!("{left} is compared with {right}"));
                }
                Value::Plain(Kind::Boolean)
            }
            Operator::In => {
                if let Some(found @ (Kind::Boolean | Kind::Number | Kind::Text)) = kinds.1 {
                    self.wrong(format!("`in` looks into a list or a map, but this is {}", found.words()));
                }
                Value::Plain(Kind::Boolean)
            }
            Operator::Plus => {
                if let Some((left, right)) = differ {
                    self.wrong(format!("{left} and {right} cannot be added"));
                }
                match kinds {
                    (Some(left), Some(right)) if left == right => Value::Plain(left),
                    _ => Value::Unknown,
                }
            }
            Operator::Arithmetic | Operator::Not => {
                for operand in [left, right] {
                    self.needs(operand, Kind::Number, "- * / %");
                }
                match kinds {
                    (Some(_), Some(_)) => Value::Plain(Kind::Number),
                    _ => Value::Unknown,
                }
            }
        }
    }

    fn needs(&mut self, value: Value<'a>, wanted: Kind, sign: &str) {
        if let Some(found) = kind(value).filter(|found| *found != wanted) {
            self.wrong(format!("`{sign}` takes {}, but this is {}", wanted.words(), found.words()));
        }
    }
}

/// The name of a field in JSON, which rules write without letters that CEL has no names with.
fn unescaped(name: &str) -> String {
    const WORDS: [&str; 22] = [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
        "__",
    ];
    if let Some(word) = name.strip_prefix("__").and_then(|rest| rest.strip_suffix("__"))
        && WORDS.contains(&word)
    {
        return word.to_owned();
    }
    let mut text = name.replace("__dot__", ".").replace("__dash__", "-").replace("__slash__", "/");
    text = text.replace("__underscores__", "__");
    text
}

#[cfg(test)]
mod tests;
