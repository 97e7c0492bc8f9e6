//! Expressions over a schema's fields, of every operator and function that rules have.

use super::{Choices, Kind};

/// A value that an expression may start from.
#[derive(Clone)]
struct Source {
    text: String,
    kind: Kind,
}

pub(crate) struct Writer<'c> {
    choices: &'c mut Choices,
    sources: Vec<Source>,
    variables: u32,
}

/// The name of a field in expressions.
fn written(name: &str) -> String {
    // A reserved word may stand as it is, and does here; what has other letters is escaped.
    name.replace("__", "__underscores__").replace('-', "__dash__").replace('.', "__dot__")
}

fn is_scalar(kind: &Kind) -> bool {
    !matches!(kind, Kind::List(_) | Kind::Map(_) | Kind::Object(_))
}

impl<'c> Writer<'c> {
    pub(crate) fn new(choices: &'c mut Choices, kind: &Kind, old: bool, optional: bool) -> Self {
        let mut writer = Writer { choices, sources: Vec::new(), variables: 0 };
        writer.reach("self".to_owned(), kind);
        if old {
            let text = if optional { "oldSelf.value()" } else { "oldSelf" };
            writer.reach(text.to_owned(), kind);
        }
        writer
    }

    pub(crate) fn rule(&mut self) -> String {
        // Some rules have a mistake, so that what is refused is compared as well.
        if self.choices.one_in(25) {
            let (left, right) = (self.int(2), self.text(2));
            let operator = *self.choices.of(&["==", "<", "+", "&&", "in"]);
            return format!("{left} {operator} {right}");
        }
        self.bool(4)
    }

    /// Makes what stands below a value known.
    fn reach(&mut self, text: String, kind: &Kind) {
        if let Kind::Object(fields) = kind {
            for (name, kind) in fields {
                self.reach(format!("{text}.{}", written(name)), kind);
            }
        }
        self.sources.push(Source { text, kind: kind.clone() });
    }

    fn source(&mut self, accept: impl Fn(&Kind) -> bool) -> Option<Source> {
        let fitting: Vec<Source> = self.sources.iter().filter(|source| accept(&source.kind)).cloned().collect();
        if fitting.is_empty() { None } else { Some(self.choices.of(&fitting).clone()) }
    }

    fn variable(&mut self) -> String {
        self.variables += 1;
        format!("v{}", self.variables)
    }

    /// An expression in which a variable of a kind is known as well.
    fn with(&mut self, variables: &[(&str, &Kind)], write: impl FnOnce(&mut Self) -> String) -> String {
        let before = self.sources.len();
        for (name, kind) in variables {
            self.reach((*name).to_owned(), kind);
        }
        let text = write(self);
        self.sources.truncate(before);
        text
    }

    fn bool(&mut self, depth: u32) -> String {
        if depth == 0 {
            let source = self.source(|kind| *kind == Kind::Bool);
            return source.map_or_else(|| (*self.choices.of(&["true", "false"])).to_owned(), |source| source.text);
        }
        let next = depth - 1;
        match self.choices.below(34) {
            0..=2 => format!("({} && {})", self.bool(next), self.bool(next)),
            3 | 4 => format!("({} || {})", self.bool(next), self.bool(next)),
            5 => format!("!({})", self.bool(next)),
            6 => format!("({} ? {} : {})", self.bool(next), self.bool(next), self.bool(next)),
            7 => self.has(),
            8..=11 => self.comparison(next),
            12..=15 => self.quantifier(next),
            16 | 17 => self.membership(next),
            18 => {
                let method = *self.choices.of(&["startsWith", "endsWith", "contains"]);
                format!("{}.{method}({})", self.text(next), self.text(next))
            }
            19 => {
                let pattern = *self.choices.of(&["'^[a-z]+$'", "r'\\d{3}'", "'x'"]);
                format!("{}.matches({pattern})", self.text(next))
            }
            20 => {
                let list = self.list(next, |kind| is_scalar(kind) && *kind != Kind::IntOrText);
                format!("{list}.isSorted()")
            }
            21 => {
                let function = *self.choices.of(&["contains", "intersects", "equivalent"]);
                let list = self.source(|kind| matches!(kind, Kind::List(_)));
                let list = list.map_or_else(|| "['a']".to_owned(), |source| source.text);
                format!("sets.{function}({list}, {list})")
            }
            22 => self.address(next),
            23 => {
                let function =
                    *self.choices.of(&["isIP", "isCIDR", "isQuantity", "isURL", "isSemver", "ip.isCanonical"]);
                format!("{function}({})", self.text(next))
            }
            24 => self.quantity(next),
            25 => format!("url({}).getHost() == {}", self.text(next), self.text(next)),
            26 => self.version(next),
            27 => {
                let names = ["dns1123Label", "dns1123Subdomain", "qualifiedName", "labelValue", "uri", "uuid", "date"];
                let format = *self.choices.of(&names);
                format!("!format.{format}().validate({}).hasValue()", self.text(next))
            }
            28 | 29 => self.optional(next),
            30 => self.kind_of(),
            31 => format!("dyn({}) == {}", self.int(next), self.text(next)),
            32 => {
                let list = self.list(next, |kind| matches!(kind, Kind::Text | Kind::Int));
                format!("({list}.max() == {list}.min())")
            }
            _ => self.value_equality(),
        }
    }

    fn has(&mut self) -> String {
        let source = self.source(|kind| !matches!(kind, Kind::Object(_)));
        match source {
            Some(source) if source.text.contains('.') && !source.text.ends_with(')') => format!("has({})", source.text),
            _ => "true".to_owned(),
        }
    }

    fn comparison(&mut self, depth: u32) -> String {
        let operator = *self.choices.of(&["==", "!=", "<", "<=", ">", ">="]);
        match self.choices.below(5) {
            0 => format!("{} {operator} {}", self.int(depth), self.int(depth)),
            1 | 2 => format!("{} {operator} {}", self.text(depth), self.text(depth)),
            3 => match self.source(|kind| matches!(kind, Kind::Time | Kind::Duration | Kind::Bytes | Kind::Double)) {
                Some(source) => format!("{0} {operator} {0}", source.text),
                None => "1.5 > 1.0".to_owned(),
            },
            _ => match self.source(|kind| *kind == Kind::IntOrText) {
                Some(source) if self.choices.one_in(2) => format!("{} {operator} {}", source.text, self.int(depth)),
                Some(source) => format!("{} {operator} {}", source.text, self.text(depth)),
                None => format!("size({}) {operator} {}", self.text(depth), self.int(depth)),
            },
        }
    }

    fn value_equality(&mut self) -> String {
        let operator = *self.choices.of(&["==", "!="]);
        let source = self.source(|kind| !is_scalar(kind));
        source.map_or_else(|| "true".to_owned(), |source| format!("{0} {operator} {0}", source.text))
    }

    fn quantifier(&mut self, depth: u32) -> String {
        let macro_name = *self.choices.of(&["all", "exists", "exists_one"]);
        let Some(source) = self.source(|kind| matches!(kind, Kind::List(_) | Kind::Map(_))) else {
            return format!("['a', 'bc'].{macro_name}(w, w == {})", self.text(depth));
        };
        let (first, second) = (self.variable(), self.variable());
        let is_two = self.choices.one_in(4);
        let (text, kind) = (source.text, source.kind);
        match kind {
            Kind::List(items) if is_two => {
                let test = self.with(&[(&first, &Kind::Int), (&second, &items)], |writer| writer.bool(depth));
                format!("{text}.{macro_name}({first}, {second}, {test})")
            }
            Kind::Map(values) if is_two => {
                let test = self.with(&[(&first, &Kind::Text), (&second, &values)], |writer| writer.bool(depth));
                format!("{text}.{macro_name}({first}, {second}, {test})")
            }
            Kind::List(items) => {
                let test = self.with(&[(&first, &items)], |writer| writer.bool(depth));
                format!("{text}.{macro_name}({first}, {test})")
            }
            Kind::Map(values) => {
                let value = format!("{text}[{first}]");
                let test = self.with(&[(&first, &Kind::Text), (&value, &values)], |writer| writer.bool(depth));
                format!("{text}.{macro_name}({first}, {test})")
            }
            _ => "true".to_owned(),
        }
    }

    fn membership(&mut self, depth: u32) -> String {
        match self.choices.below(4) {
            0 => format!("{} in ['a', 'bcd', {}]", self.text(depth), self.text(depth)),
            1 => match self.source(|kind| matches!(kind, Kind::Map(_))) {
                Some(source) => format!("{} in {}", self.text(depth), source.text),
                None => format!("{} in {{'a': 1, 'b': 2}}", self.text(depth)),
            },
            2 => {
                let list = self.list(depth, |kind| *kind == Kind::Int);
                format!("{} in {list}", self.int(depth))
            }
            _ => {
                let list = self.list(depth, |kind| *kind == Kind::Text);
                format!("{} in {list}", self.text(depth))
            }
        }
    }

    fn address(&mut self, depth: u32) -> String {
        match self.choices.below(4) {
            0 => format!("cidr({}).containsIP({})", self.text(depth), self.text(depth)),
            1 => format!("cidr({}).containsCIDR(cidr({}))", self.text(depth), self.text(depth)),
            2 => format!("ip({}).family() == 4", self.text(depth)),
            _ => format!("cidr({}).ip() == ip({})", self.text(depth), self.text(depth)),
        }
    }

    fn quantity(&mut self, depth: u32) -> String {
        match self.choices.below(3) {
            0 => format!("quantity({}).isLessThan(quantity('1Gi'))", self.text(depth)),
            1 => format!("quantity({}) == quantity({}).add(2)", self.text(depth), self.text(depth)),
            _ => format!("quantity({}).compareTo(quantity({})) > 0", self.text(depth), self.text(depth)),
        }
    }

    fn version(&mut self, depth: u32) -> String {
        match self.choices.below(2) {
            0 => format!("semver({}).isGreaterThan(semver('1.2.3'))", self.text(depth)),
            _ => format!("semver({}, true).major() > {}", self.text(depth), self.int(depth)),
        }
    }

    fn optional(&mut self, depth: u32) -> String {
        let source = self.source(|kind| matches!(kind, Kind::Text | Kind::Int));
        let Some(source) = source.filter(|source| source.text.contains('.')) else { return "true".to_owned() };
        let Some((operand, field)) = source.text.rsplit_once('.').filter(|(operand, _)| !operand.ends_with(')')) else {
            return "true".to_owned();
        };
        if field.contains('[') {
            return "true".to_owned();
        }
        let name = self.variable();
        let is_text = source.kind == Kind::Text;
        match self.choices.below(3) {
            0 if is_text => format!("{operand}.?{field}.orValue('x') == {}", self.text(depth)),
            0 => format!("{operand}.?{field}.orValue(3) == {}", self.int(depth)),
            1 => {
                let test = self.with(&[(&name, &source.kind)], |writer| writer.bool(depth));
                format!("{operand}.?{field}.optMap({name}, {test}).orValue(false)")
            }
            _ => format!("{operand}.?{field}.hasValue()"),
        }
    }

    fn kind_of(&mut self) -> String {
        match self.source(|kind| *kind == Kind::IntOrText) {
            Some(source) => {
                let text = source.text;
                format!("(type({text}) == int ? int({text}) < 100 : string({text}).matches('^[0-9]+%$'))")
            }
            None => match self.source(|kind| *kind == Kind::Text) {
                Some(source) => format!("type({}) == string", source.text),
                None => "type(1) == int".to_owned(),
            },
        }
    }

    fn int(&mut self, depth: u32) -> String {
        if depth > 0 {
            let next = depth - 1;
            match self.choices.below(10) {
                0 => {
                    let operator = *self.choices.of(&["+", "-", "*", "/", "%"]);
                    return format!("({} {operator} {})", self.int(next), self.int(next));
                }
                1 => return format!("size({})", self.text(next)),
                2 => {
                    if let Some(source) = self.source(|kind| matches!(kind, Kind::List(_) | Kind::Map(_))) {
                        return format!("{}.size()", source.text);
                    }
                }
                3 => {
                    let method = *self.choices.of(&["indexOf", "lastIndexOf"]);
                    return format!("{}.{method}({})", self.text(next), self.text(next));
                }
                4 => {
                    let list = self.list(next, |kind| *kind == Kind::Int);
                    return format!("{list}.{}()", *self.choices.of(&["sum", "max", "min"]));
                }
                5 => return format!("int({})", self.text(next)),
                6 => {
                    let list = self.list(next, |kind| *kind == Kind::Text);
                    return format!("{list}.indexOf({})", self.text(next));
                }
                _ => {}
            }
        }
        let source = self.source(|kind| *kind == Kind::Int);
        match source.filter(|_| !self.choices.one_in(3)) {
            Some(source) => source.text,
            None => self.choices.of(&["0", "1", "-7", "1000"]).to_string(),
        }
    }

    fn text(&mut self, depth: u32) -> String {
        if depth > 0 {
            let next = depth - 1;
            match self.choices.below(16) {
                0 | 1 => return format!("({} + {})", self.text(next), self.text(next)),
                2 => {
                    let method = *self.choices.of(&["lowerAscii", "upperAscii", "trim"]);
                    return format!("{}.{method}()", self.text(next));
                }
                3 => return format!("{}.replace({}, {})", self.text(next), self.text(0), self.text(0)),
                4 => return format!("{}.substring(0, {})", self.text(next), self.int(next)),
                5 => return format!("{}.charAt({})", self.text(next), self.int(next)),
                6 => return format!("{}.find('[a-z]+')", self.text(next)),
                7 => {
                    let list = self.list(next, |kind| *kind == Kind::Text);
                    return format!("{list}.join({})", self.text(0));
                }
                8 => return format!("string({})", self.int(next)),
                9 => return format!("({} ? {} : {})", self.bool(next), self.text(next), self.text(next)),
                10 => {
                    let list = self.list(next, |kind| *kind == Kind::Text);
                    return format!("{list}[{}]", self.int(0));
                }
                11 => return format!("'%s-%d'.format([{}, {}].map(e, dyn(e)))", self.text(0), self.text(0)),
                12 => {
                    if let Some(source) = self.source(|kind| *kind == Kind::Bytes) {
                        return format!("string({})", source.text);
                    }
                }
                13 => {
                    if let Some(source) = self.source(|kind| *kind == Kind::IntOrText) {
                        return format!("string({})", source.text);
                    }
                }
                _ => {}
            }
        }
        let source = self.source(|kind| *kind == Kind::Text);
        match source.filter(|_| !self.choices.one_in(3)) {
            Some(source) => source.text,
            None => (*self.choices.of(&["''", "'a'", "'some text'", "'\u{e9}t\u{e9}'", "\"two words\""])).to_owned(),
        }
    }

    /// A list of items of a kind that is accepted, or one of texts or numbers written here.
    fn list(&mut self, depth: u32, accept: impl Fn(&Kind) -> bool + Copy) -> String {
        let source = self.source(|kind| matches!(kind, Kind::List(items) if accept(items)));
        let found = source.map(|source| (source.text, source.kind)).filter(|_| !self.choices.one_in(4));
        let Some((text, Kind::List(items))) = found else {
            let is_text = accept(&Kind::Text);
            return match (self.choices.below(5), is_text) {
                (0, true) => format!("{}.split(',')", self.text(depth.saturating_sub(1))),
                (1, true) => format!("{}.split(',', 3)", self.text(depth.saturating_sub(1))),
                (2, true) => format!("{}.findAll('[a-z]')", self.text(depth.saturating_sub(1))),
                (_, true) => format!("['a', {}, 'longer text']", self.text(0)),
                (_, false) => format!("[1, {}, 30]", self.int(0)),
            };
        };
        if depth == 0 {
            return text;
        }
        let name = self.variable();
        match self.choices.below(6) {
            0 => {
                let test = self.with(&[(&name, &items)], |writer| writer.bool(depth - 1));
                format!("{text}.filter({name}, {test})")
            }
            1 => format!("{text}.map({name}, {name})"),
            2 => format!("({text} + {text})"),
            3 => {
                let second = self.variable();
                format!("{text}.transformList({name}, {second}, {second})")
            }
            _ => text,
        }
    }
}
