//! A CEL expression as a tree.

use super::{
    Mistake,
    lexer::{Token, tokens},
};

/// How deep an expression may nest: far deeper than any rule, and not as deep as the stack.
const DEPTH_MAX: usize = 60;

/// A part of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node<'t> {
    Literal(Literal),
    Name(usize, &'t str),
    /// `of.name`, and whether it is `of.?name`.
    Member {
        of: Box<Node<'t>>,
        at: usize,
        name: &'t str,
        is_optional: bool,
    },
    Index(Box<Node<'t>>, Box<Node<'t>>),
    /// `name(…)`, or `on.name(…)`.
    Call {
        on: Option<Box<Node<'t>>>,
        at: usize,
        name: &'t str,
        arguments: Vec<Node<'t>>,
    },
    Unary(Operator, Box<Node<'t>>),
    Binary {
        operator: Operator,
        at: usize,
        left: Box<Node<'t>>,
        right: Box<Node<'t>>,
    },
    Conditional(Box<[Node<'t>; 3]>),
    /// A list, or the keys and values of a map or message.
    Collection {
        parts: Vec<Node<'t>>,
        is_list: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Literal {
    Number,
    Text,
    Bytes,
    Boolean,
    Null,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Or,
    And,
    Not,
    /// `==` and `!=`.
    Equality,
    /// `<`, `<=`, `>` and `>=`.
    Order,
    In,
    Plus,
    /// `-`, `*`, `/` and `%`.
    Arithmetic,
}

/// Reads an expression.
pub(crate) fn parse(text: &str) -> Result<Node<'_>, Mistake> {
    let mut parser = Parser { tokens: tokens(text)?, next: 0, depth: 0 };
    let node = parser.expression()?;
    match parser.peek() {
        Token::End => Ok(node),
        _ => Err(parser.mistake("an operator was expected")),
    }
}

struct Parser<'t> {
    tokens: Vec<(usize, Token<'t>)>,
    next: usize,
    depth: usize,
}

/// Operators of two operands, those that bind least first.
const LEVELS: [&[(&str, Operator)]; 5] = [
    &[("||", Operator::Or)],
    &[("&&", Operator::And)],
    &[
        ("==", Operator::Equality),
        ("!=", Operator::Equality),
        ("<=", Operator::Order),
        (">=", Operator::Order),
        ("<", Operator::Order),
        (">", Operator::Order),
        ("in", Operator::In),
    ],
    &[("+", Operator::Plus), ("-", Operator::Arithmetic)],
    &[("*", Operator::Arithmetic), ("/", Operator::Arithmetic), ("%", Operator::Arithmetic)],
];

/// Words that name nothing.
const RESERVED: [&str; 18] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

impl<'t> Parser<'t> {
    fn peek(&self) -> &Token<'t> {
        self.tokens.get(self.next).map_or(&Token::End, |(_, token)| token)
    }

    fn place(&self) -> usize {
        self.tokens.get(self.next).map_or(0, |(at, _)| *at)
    }

    fn advance(&mut self) {
        self.next += 1;
    }

    fn mistake(&self, message: &str) -> Mistake {
        Mistake::new(self.place(), message)
    }

    fn takes(&mut self, sign: &str) -> bool {
        let is_it = matches!(self.peek(), Token::Sign(next) if *next == sign);
        if is_it {
            self.advance();
        }
        is_it
    }

    fn needs(&mut self, sign: &str) -> Result<(), Mistake> {
        if self.takes(sign) { Ok(()) } else { Err(self.mistake(&format!("`{sign}` was expected"))) }
    }

    fn expression(&mut self) -> Result<Node<'t>, Mistake> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.mistake("it nests too deep"));
        }
        let condition = self.level(0)?;
        let node = if self.takes("?") {
            let one = self.level(0)?;
            self.needs(":")?;
            let other = self.expression()?;
            Node::Conditional(Box::new([condition, one, other]))
        } else {
            condition
        };
        self.depth -= 1;
        Ok(node)
    }

    fn level(&mut self, level: usize) -> Result<Node<'t>, Mistake> {
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.level(level + 1)?;
        loop {
            let at = self.place();
            let text = match self.peek() {
                Token::Sign(sign) => sign,
                Token::Word("in") => "in",
                _ => return Ok(left),
            };
            let Some((_, operator)) = operators.iter().find(|(known, _)| *known == text) else { return Ok(left) };
            self.advance();
            let right = self.level(level + 1)?;
            left = Node::Binary { operator: *operator, at, left: Box::new(left), right: Box::new(right) };
        }
    }

    fn unary(&mut self) -> Result<Node<'t>, Mistake> {
        for (sign, operator) in [("!", Operator::Not), ("-", Operator::Arithmetic)] {
            let mut count = 0;
            while self.takes(sign) {
                count += 1;
            }
            if count > 0 {
                return Ok(Node::Unary(operator, Box::new(self.member()?)));
            }
        }
        self.member()
    }

    fn member(&mut self) -> Result<Node<'t>, Mistake> {
        let mut node = self.primary()?;
        loop {
            if self.takes("[") || self.takes("[?") {
                let index = self.expression()?;
                self.needs("]")?;
                node = Node::Index(Box::new(node), Box::new(index));
                continue;
            }
            let is_optional = self.takes(".?");
            if !is_optional && !self.takes(".") {
                return Ok(node);
            }
            let at = self.place();
            let name = match self.peek() {
                Token::Word(name) if !matches!(*name, "in" | "true" | "false" | "null") => *name,
                Token::Quoted(name) => *name,
                _ => return Err(self.mistake("the name of a field or a function was expected")),
            };
            self.advance();
            node = if !is_optional && self.takes("(") {
                Node::Call { on: Some(Box::new(node)), at, name, arguments: self.list(")")? }
            } else if self.is_message(&node) {
                Node::Collection { parts: self.entries(false)?, is_list: false }
            } else {
                Node::Member { of: Box::new(node), at, name, is_optional }
            };
        }
    }

    /// Whether `{` follows the name of a type, as in `google.protobuf.Int64Value{value: 1}`.
    fn is_message(&mut self, of: &Node<'_>) -> bool {
        matches!(of, Node::Name(..) | Node::Member { .. }) && self.takes("{")
    }

    fn primary(&mut self) -> Result<Node<'t>, Mistake> {
        let at = self.place();
        let literal = match self.peek() {
            Token::Integer | Token::Float => Some(Literal::Number),
            Token::Text => Some(Literal::Text),
            Token::Bytes => Some(Literal::Bytes),
            Token::Word("true" | "false") => Some(Literal::Boolean),
            Token::Word("null") => Some(Literal::Null),
            _ => None,
        };
        if let Some(literal) = literal {
            self.advance();
            return Ok(Node::Literal(literal));
        }
        if self.takes("(") {
            let node = self.expression()?;
            self.needs(")")?;
            return Ok(node);
        }
        if self.takes("[") {
            return Ok(Node::Collection { parts: self.list("]")?, is_list: true });
        }
        // `[?a]` is a list whose first item is optional.
        if self.takes("[?") {
            return Ok(Node::Collection { parts: self.list("]")?, is_list: true });
        }
        if self.takes("{") {
            return Ok(Node::Collection { parts: self.entries(true)?, is_list: false });
        }
        self.takes(".");
        let Token::Word(name) = *self.peek() else { return Err(self.mistake("a value was expected")) };
        if RESERVED.contains(&name) {
            return Err(self.mistake(&format!("`{name}` is a reserved word and no value")));
        }
        self.advance();
        if self.takes("(") {
            return Ok(Node::Call { on: None, at, name, arguments: self.list(")")? });
        }
        Ok(Node::Name(at, name))
    }

    /// Expressions up to a bracket, which has been opened.
    fn list(&mut self, end: &str) -> Result<Vec<Node<'t>>, Mistake> {
        let mut parts = Vec::new();
        while !self.takes(end) {
            self.takes("?");
            parts.push(self.expression()?);
            if !self.takes(",") {
                self.needs(end)?;
                break;
            }
        }
        Ok(parts)
    }

    /// The entries of a map, or the values of the fields of a message, up to the bracket.
    fn entries(&mut self, has_keys: bool) -> Result<Vec<Node<'t>>, Mistake> {
        let mut parts = Vec::new();
        while !self.takes("}") {
            self.takes("?");
            let key = self.expression()?;
            parts.extend(has_keys.then_some(key));
            self.needs(":")?;
            parts.push(self.expression()?);
            if !self.takes(",") {
                self.needs("}")?;
                break;
            }
        }
        Ok(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn rules_of_well_known_projects_are_read() {
        for rule in [
            "self == oldSelf",
            "!has(self.a) || self.a.all(x, x.size() <= 3)",
            "self.namespace != '' && self.__in__ > 0",
            "self.?name.orValue('') == \"a\\\"b\"",
            "has(oldSelf.x) ? has(self.x) : true",
            "self.replicas <= 0x10 && self.f < 1.5e-3 && self.u == 3u && -self.n <= --4",
            "self.list.map(x, {'a': x, \"b\": [x, x + 1,]}).size() % 2 == 0",
            "quantity(self.q).isLessThan(quantity('1Gi')) // as memory",
            "self.matches(r'^\\d+$') || self == '''a\nb''' || b'\\x00' == b\"\"",
            "self.`foo.bar` in ['a', 'b'] && !!self.ok",
            "format.dns1123Label().validate(self.name).hasValue()",
            "self.exists_one(c, c.type == 'Ready' && c[?'status'].orValue('') in {'True': 1})",
            "type(self) == int && self.x.y[0].z != null",
            "google.protobuf.Int64Value{value: 1} == self",
            "1 < 2 ? 3 : 4 < 5 ? 6 : 7",
            ".5 < self",
            "object.metadata.name != ''",
        ] {
            assert!(parse(rule).is_ok(), "{rule}: {:?}", parse(rule));
        }
    }

    #[test]
    fn what_is_no_cel_is_said_with_its_place() {
        for (rule, expected) in [
            ("self.min <= ", "a value was expected at the end"),
            ("self.min <= (self.max", "`)` was expected at the end"),
            ("self.min < self.max)", "an operator was expected at column 20, before `)`"),
            ("self.min = 3", "an operator was expected at column 10, before `= 3`"),
            ("self.min & 3", "`&` has no meaning at column 10, before `& 3`"),
            ("self.a and self.b", "an operator was expected at column 8, before `and self.b`"),
            ("self.name == 'a", "a text without its end at column 14, before `'a`"),
            ("self.name == '\\d'", "a text with an escape that CEL does not know at column 14, before `'\\d'`"),
            ("self.", "the name of a field or a function was expected at the end"),
            ("self.all(x, )\n  && ]", "a value was expected at line 2, column 6, before `]`"),
            ("if self.a", "`if` is a reserved word and no value at column 1, before `if self.a`"),
            ("self.a ? 1", "`:` was expected at the end"),
            ("{1}", "`:` was expected at column 3, before `}`"),
            ("1a", "a name that begins with a digit at column 1, before `1a`"),
            ("", "a value was expected at the end"),
        ] {
            let mistake = parse(rule).expect_err(rule);
            assert_eq!(mistake.shown(rule), format!("this is no CEL: {expected}"), "{rule}");
        }
        assert!(parse(&"(".repeat(100_000)).is_err(), "and the stack holds");
    }
}
