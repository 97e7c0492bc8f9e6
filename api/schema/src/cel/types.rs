//! The types of expressions, and when one may stand for another.

use std::{collections::HashMap, sync::Arc};

use super::declared::Declared;

/// The static type of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Type {
    /// Not known before evaluation.
    Dyn,
    /// The type of an expression with a mistake, which is reported once.
    Error,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Timestamp,
    Duration,
    List(Arc<Type>),
    Map(Arc<Type>, Arc<Type>),
    Optional(Arc<Type>),
    /// An object with declared fields.
    Object(Object),
    /// A type that a library of functions brings, by its name.
    Library(&'static str),
    /// A type as a value.
    Kind(Option<Arc<Type>>),
    /// A type to be found out.
    Parameter(Parameter),
}

/// The declaration of an object's type. Types of objects are equal where they are declared at the same place.
#[derive(Clone, Debug)]
pub(super) struct Object(pub Arc<Declared>);

impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// A parameter of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Parameter {
    /// The letter with which a function is declared.
    Letter(char),
    /// The parameter of one use of a function.
    Free(u32),
}

/// Types of libraries that hold one value and no fields.
const OPAQUE: [&str; 2] = ["net.IP", "net.CIDR"];

impl Type {
    pub(super) fn list(items: Type) -> Type {
        Type::List(Arc::new(items))
    }

    pub(super) fn map(keys: Type, values: Type) -> Type {
        Type::Map(Arc::new(keys), Arc::new(values))
    }

    pub(super) fn optional(value: Type) -> Type {
        Type::Optional(Arc::new(value))
    }

    /// The name in messages.
    pub(super) fn name(&self) -> String {
        match self {
            Type::Dyn => "dyn".to_owned(),
            Type::Error => "!error!".to_owned(),
            Type::Null => "null".to_owned(),
            Type::Bool => "bool".to_owned(),
            Type::Int => "int".to_owned(),
            Type::Uint => "uint".to_owned(),
            Type::Double => "double".to_owned(),
            Type::String => "string".to_owned(),
            Type::Bytes => "bytes".to_owned(),
            Type::Timestamp => "timestamp".to_owned(),
            Type::Duration => "duration".to_owned(),
            Type::List(items) => format!("list({})", items.name()),
            Type::Map(keys, values) => format!("map({}, {})", keys.name(), values.name()),
            Type::Optional(value) => format!("optional_type({})", value.name()),
            Type::Object(_) => "object".to_owned(),
            Type::Library(name) => (*name).to_owned(),
            Type::Kind(None) => "type".to_owned(),
            Type::Kind(Some(of)) => format!("type({})", of.name()),
            Type::Parameter(Parameter::Letter(letter)) => letter.to_string(),
            Type::Parameter(Parameter::Free(number)) => format!("_var{number}"),
        }
    }

    pub(super) fn is_dyn_or_error(&self) -> bool {
        matches!(self, Type::Dyn | Type::Error)
    }

    /// Whether null may stand for a value of the type.
    fn is_nullable(&self) -> bool {
        matches!(
            self,
            Type::Null | Type::Optional(_) | Type::Object(_) | Type::Library(_) | Type::Timestamp | Type::Duration
        )
    }

    /// Whether values of the type have members that are read like fields.
    pub(super) fn is_opaque(&self) -> bool {
        matches!(self, Type::Optional(_)) || matches!(self, Type::Library(name) if OPAQUE.contains(name))
    }

    /// Whether all values of the type have the same size.
    pub(super) fn is_of_fixed_size(&self) -> bool {
        match self {
            Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => true,
            Type::Optional(value) => value.is_of_fixed_size(),
            _ => false,
        }
    }

    /// The type with the parameters replaced for which there is something.
    pub(super) fn replaced(&self, with: &impl Fn(Parameter) -> Option<Type>) -> Type {
        let inner = |type_: &Arc<Type>| Arc::new(type_.replaced(with));
        match self {
            Type::Parameter(parameter) => with(*parameter).unwrap_or_else(|| self.clone()),
            Type::List(items) => Type::List(inner(items)),
            Type::Map(keys, values) => Type::Map(inner(keys), inner(values)),
            Type::Optional(value) => Type::Optional(inner(value)),
            Type::Kind(of) => Type::Kind(of.as_ref().map(inner)),
            other => other.clone(),
        }
    }

    /// The types that the type is made of.
    fn parts(&self) -> Vec<&Type> {
        match self {
            Type::List(inner) | Type::Optional(inner) | Type::Kind(Some(inner)) => vec![inner],
            Type::Map(keys, values) => vec![keys, values],
            _ => Vec::new(),
        }
    }

    /// Whether the type is the other one, or leaves more open.
    fn is_equal_or_more_general(&self, other: &Type) -> bool {
        match (self, other) {
            (Type::Dyn | Type::Parameter(_), _) | (Type::Kind(_), Type::Kind(_)) => true,
            (_, Type::Dyn | Type::Parameter(_)) => false,
            (Type::Optional(left), Type::Optional(right)) | (Type::List(left), Type::List(right)) => {
                left.is_equal_or_more_general(right)
            }
            (Type::Map(keys, values), Type::Map(other_keys, other_values)) => {
                keys.is_equal_or_more_general(other_keys) && values.is_equal_or_more_general(other_values)
            }
            (left, right) => left == right,
        }
    }

    /// The more general of two types that agree.
    pub(super) fn most_general(self, other: Type) -> Type {
        if self.is_equal_or_more_general(&other) { self } else { other }
    }
}

/// What is known about parameters of types.
#[derive(Clone, Debug, Default)]
pub(super) struct Bindings(HashMap<Parameter, Type>);

impl Bindings {
    /// Whether values of one type may stand where those of the other are wanted; what that says about parameters is
    /// kept if so.
    pub(super) fn assign(&mut self, from: &Type, to: &Type) -> bool {
        self.assign_all(std::iter::once((from, to)))
    }

    /// The same for several at once: all of them, or nothing is kept.
    pub(super) fn assign_all<'t>(&mut self, pairs: impl Iterator<Item = (&'t Type, &'t Type)>) -> bool {
        let mut tried = self.clone();
        for (from, to) in pairs {
            if !tried.agrees(from, to) {
                return false;
            }
        }
        *self = tried;
        true
    }

    /// The type with what is known in place of its parameters.
    pub(super) fn resolve(&self, type_: &Type) -> Type {
        type_.replaced(&|parameter| self.0.get(&parameter).map(|known| self.resolve(known)))
    }

    /// The same, with `dyn` for parameters of which nothing is known.
    pub(super) fn resolve_fully(&self, type_: &Type) -> Type {
        self.resolve(type_).replaced(&|_| Some(Type::Dyn))
    }

    fn agrees(&mut self, from: &Type, to: &Type) -> bool {
        if let Type::Parameter(parameter) = to {
            match self.bind(*parameter, from) {
                (true, _) => return true,
                (false, true) => return false,
                (false, false) => {}
            }
        }
        if let Type::Parameter(parameter) = from {
            return self.bind(*parameter, to).0;
        }
        match (from, to) {
            (from, to) if from.is_dyn_or_error() || to.is_dyn_or_error() => true,
            (Type::Null, other) | (other, Type::Null) => other.is_nullable(),
            (Type::List(from), Type::List(to)) | (Type::Optional(from), Type::Optional(to)) => self.agrees(from, to),
            (Type::Map(keys, values), Type::Map(to_keys, to_values)) => {
                self.agrees(keys, to_keys) && self.agrees(values, to_values)
            }
            (Type::Kind(_), Type::Kind(_)) => true,
            (from, to) => from == to,
        }
    }

    /// Whether a type can be what a parameter stands for, and whether the parameter stood for something before.
    fn bind(&mut self, parameter: Parameter, type_: &Type) -> (bool, bool) {
        let own = Type::Parameter(parameter);
        if own == *type_ {
            return (true, true);
        }
        if let Some(known) = self.0.get(&parameter).cloned() {
            if known == *type_ {
                return (true, true);
            }
            if !self.agrees(type_, &known) {
                return (false, true);
            }
            let general = type_.clone().most_general(known);
            if !self.refers(&general, &own) {
                self.0.insert(parameter, general);
            }
            return (true, true);
        }
        if self.refers(type_, &own) {
            return (false, false);
        }
        self.0.insert(parameter, type_.clone());
        (true, false)
    }

    /// Whether a type is made of a parameter.
    fn refers(&self, type_: &Type, parameter: &Type) -> bool {
        if type_ == parameter {
            return true;
        }
        if let Type::Parameter(inner) = type_ {
            return self.0.get(inner).is_some_and(|known| self.refers(known, parameter));
        }
        type_.parts().into_iter().any(|part| self.refers(part, parameter))
    }
}
