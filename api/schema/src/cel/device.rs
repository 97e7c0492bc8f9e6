//! Expressions that select devices, as requests and classes of dynamic resource allocation have them.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use kube_cel::cel::{
    Context, IdedExpr, Value as CelValue,
    common::ast::{CallExpr, Expr, MapExpr, SelectExpr, operators},
    objects::{Key, Map as CelMap},
};

use super::{
    check::Parsed,
    evaluate::reason,
    executor,
    macros::{Macros, parts_mut},
    types::Type,
    value,
};

/// The only variable of a selector.
const DEVICE: &str = "device";
/// The members of a device that are maps by domain.
const BY_DOMAIN: [&str; 2] = ["attributes", "capacity"];

/// What a selector sees of a device. A name without a domain belongs to the driver.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Device {
    /// The driver.
    pub driver: String,
    /// Attributes by name, with or without a domain.
    pub attributes: BTreeMap<String, Attribute>,
    /// Quantities by name, with or without a domain.
    pub capacity: BTreeMap<String, String>,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attribute {
    /// A truth value.
    Bool(bool),
    /// A number.
    Int(i64),
    /// A text.
    Text(String),
    /// A semantic version.
    Version(String),
    /// A value of a kind that is not known.
    Unknown,
}

/// A checked expression that is true of the devices it selects.
///
/// ```
/// use koord_schema::cel::{Attribute, Device, DeviceSelector};
/// let selector = DeviceSelector::compile("device.attributes['gpu.example.com'].model == 'A'").unwrap();
/// let attributes = [("model".to_owned(), Attribute::Text("A".to_owned()))].into();
/// let device = Device { driver: "gpu.example.com".to_owned(), attributes, ..Device::default() };
/// assert_eq!(selector.select(vec![device], std::time::Duration::from_secs(1)), Ok(vec![Ok(true)]));
/// ```
#[derive(Clone, Debug)]
pub struct DeviceSelector(IdedExpr);

/// An evaluation took longer than it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overrun;

impl DeviceSelector {
    /// Compiles an expression. The mistake is worded as the API server words it.
    pub fn compile(text: &str) -> Result<Self, String> {
        let variables = vec![(DEVICE.to_owned(), Type::Dyn)];
        let parsed = Parsed::of(text, variables, Macros::WithBind)
            .map_err(|mistakes| format!("compilation failed: {mistakes}"))?;
        if !matches!(parsed.typing.type_, Type::Bool | Type::Dyn) {
            return Err(format!("must evaluate to bool or the unknown type, not {}", parsed.typing.type_.name()));
        }
        let mut expression = parsed.evaluated();
        rewrite(&mut expression, &or_empty);
        Ok(Self(expression))
    }

    /// Whether each device is selected; an evaluation that fails says why. All of them together may take `limit`.
    pub fn select(&self, devices: Vec<Device>, limit: Duration) -> Result<Vec<Result<bool, String>>, Overrun> {
        let expression = self.0.clone();
        let answers = executor::SHARED
            .run(limit, move |context| devices.iter().map(|device| selects(&expression, device, context)).collect());
        answers.map_err(|_| Overrun)
    }
}

fn selects(expression: &IdedExpr, device: &Device, context: &Context<'_>) -> Result<bool, String> {
    let mut scope = context.new_inner_scope();
    scope.add_variable_from_value(DEVICE, of_device(device, context)?);
    match CelValue::resolve(expression, &scope) {
        Ok(CelValue::Bool(selects)) => Ok(selects),
        Ok(_) => Err("the result is no bool".to_owned()),
        Err(failure) => Err(reason(&failure)),
    }
}

fn of_device(device: &Device, context: &Context<'_>) -> Result<CelValue, String> {
    let attributes = device.attributes.iter().map(|(name, value)| Ok((&**name, of_attribute(name, value, context)?)));
    let attributes = attributes.collect::<Result<Vec<_>, String>>()?;
    let capacity = device.capacity.iter().map(|(name, amount)| {
        let quantity = value::call("quantity", amount, context);
        Ok((&**name, quantity.ok_or_else(|| format!("capacity {name}: {amount:?} is no quantity"))?))
    });
    let capacity = capacity.collect::<Result<Vec<_>, String>>()?;
    Ok(map([
        ("driver", text(&device.driver)),
        ("attributes", by_domain(&device.driver, attributes)),
        ("capacity", by_domain(&device.driver, capacity)),
    ]))
}

fn of_attribute(name: &str, attribute: &Attribute, context: &Context<'_>) -> Result<CelValue, String> {
    match attribute {
        Attribute::Bool(value) => Ok(CelValue::Bool(*value)),
        Attribute::Int(value) => Ok(CelValue::Int(*value)),
        Attribute::Text(value) => Ok(text(value)),
        Attribute::Version(value) => value::call("semver", value, context)
            .ok_or_else(|| format!("attribute {name}: {value:?} is no semantic version")),
        Attribute::Unknown => Err(format!("attribute {name}: unsupported attribute value")),
    }
}

fn text(text: &str) -> CelValue {
    CelValue::String(Arc::new(text.to_owned()))
}

/// Named values as a map of maps; what has no domain is the driver's.
fn by_domain(driver: &str, values: Vec<(&str, CelValue)>) -> CelValue {
    let mut domains = BTreeMap::<&str, Vec<(&str, CelValue)>>::new();
    for (name, value) in values {
        let (domain, id) = name.split_once('/').unwrap_or((driver, name));
        domains.entry(domain).or_default().push((id, value));
    }
    map(domains.into_iter().map(|(domain, values)| (domain, map(values))))
}

fn map<'n>(entries: impl IntoIterator<Item = (&'n str, CelValue)>) -> CelValue {
    let entries = entries.into_iter().map(|(name, value)| (Key::String(Arc::new(name.to_owned())), value));
    CelValue::Map(CelMap { map: Arc::new(entries.collect::<HashMap<_, _>>()) })
}

/// Rewrites every part of an expression, the inner ones first.
fn rewrite(expression: &mut IdedExpr, part: &dyn Fn(&Expr) -> Option<Expr>) {
    for inner in parts_mut(&mut expression.expr) {
        rewrite(inner, part);
    }
    if let Some(rewritten) = part(&expression.expr) {
        expression.expr = rewritten;
    }
}

/// A domain of which a device has nothing is there all the same, and empty.
fn or_empty(part: &Expr) -> Option<Expr> {
    let Expr::Call(CallExpr { func_name, target: None, args }) = part else { return None };
    let (operators::INDEX, [domains, domain]) = (func_name.as_str(), args.as_slice()) else { return None };
    let Expr::Select(SelectExpr { operand, field, test: false }) = &domains.expr else { return None };
    let is_device = matches!(&operand.expr, Expr::Ident(name) if name == DEVICE);
    let call = |name: &str, args| Expr::Call(CallExpr { func_name: name.to_owned(), target: None, args });
    let ided = |expr| IdedExpr { id: domains.id, expr };
    (is_device && BY_DOMAIN.contains(&field.as_str())).then(|| {
        let is_there = ided(call(operators::IN, vec![domain.clone(), domains.clone()]));
        call(operators::CONDITIONAL, vec![is_there, ided(part.clone()), ided(Expr::Map(MapExpr::default()))])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(20);

    fn gpu() -> Device {
        let attributes = [
            ("model", Attribute::Text("A100".to_owned())),
            ("cores", Attribute::Int(108)),
            ("shared", Attribute::Bool(false)),
            ("firmware", Attribute::Version("2.10.0".to_owned())),
            ("pci.example.org/root", Attribute::Text("pci0".to_owned())),
        ];
        Device {
            driver: "gpu.example.com".to_owned(),
            attributes: attributes.map(|(name, value)| (name.to_owned(), value)).into(),
            capacity: [("memory".to_owned(), "40Gi".to_owned())].into(),
        }
    }

    fn selected(text: &str, device: Device) -> Result<bool, String> {
        DeviceSelector::compile(text)?.select(vec![device], LIMIT).unwrap().remove(0)
    }

    #[test]
    fn a_selector_sees_driver_attributes_and_capacity() {
        for (text, expected) in [
            ("device.driver == 'gpu.example.com'", true),
            ("device.attributes['gpu.example.com'].model.startsWith('A')", true),
            ("device.attributes['gpu.example.com'].cores > 108", false),
            ("!device.attributes['gpu.example.com'].shared", true),
            ("device.attributes['gpu.example.com'].firmware.isGreaterThan(semver('2.9.0'))", true),
            ("device.attributes['pci.example.org'].root == 'pci0'", true),
            ("device.capacity['gpu.example.com'].memory.compareTo(quantity('40Gi')) >= 0", true),
            ("device.capacity['gpu.example.com'].memory.isGreaterThan(quantity('40Gi'))", false),
            ("cel.bind(gpu, device.attributes['gpu.example.com'], gpu.cores > 100 && gpu.model == 'A100')", true),
        ] {
            assert_eq!(selected(text, gpu()), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_domain_of_which_a_device_has_nothing_is_empty() {
        assert_eq!(selected("'x' in device.attributes['other.example.com']", gpu()), Ok(false));
        assert_eq!(selected("has(device.capacity['other.example.com'].memory)", gpu()), Ok(false));
        assert_eq!(selected("'other.example.com' in device.attributes", gpu()), Ok(false));
        let absent = selected("device.attributes['gpu.example.com'].family == 'x'", gpu());
        assert_eq!(absent, Err("no such key: family".to_owned()));
    }

    #[test]
    fn mistakes_are_named_and_so_are_values_that_cannot_be_read() {
        let refused = |text: &str| DeviceSelector::compile(text).unwrap_err();
        assert_eq!(refused("device.driver == 'x' ? 2 : 3"), "must evaluate to bool or the unknown type, not int");
        assert!(refused("node.name == 'x'").contains("undeclared reference to 'node'"));
        assert!(refused("device.").starts_with("compilation failed: ERROR: <input>:1:8: Syntax error"));
        let with = |name: &str, value| Device { attributes: [(name.to_owned(), value)].into(), ..Device::default() };
        let version = with("v", Attribute::Version("one".to_owned()));
        assert_eq!(selected("true", version).unwrap_err(), "attribute v: \"one\" is no semantic version");
        let unknown = with("u", Attribute::Unknown);
        assert_eq!(selected("true", unknown).unwrap_err(), "attribute u: unsupported attribute value");
        assert_eq!(selected("device.driver", gpu()).unwrap_err(), "the result is no bool");
    }

    #[test]
    fn an_evaluation_that_takes_too_long_is_given_up() {
        let [a, b, c] = ["x", "y", "z"].map(|name| format!("[{}].all({name}, ", vec!["1"; 60].join(",")));
        let selector = DeviceSelector::compile(&format!("{a}{b}{c}x + y + z > 0)))")).unwrap();
        assert_eq!(selector.select(vec![gpu(); 30], Duration::from_millis(1)), Err(Overrun));
    }
}
