//! List, by pages and at past revisions.

use std::sync::Arc;

use base64::{
    Engine as _, alphabet,
    engine::general_purpose::{GeneralPurpose, NO_PAD, URL_SAFE_NO_PAD},
};
use koord_schema::go_text;
use serde_json::{Map, Value, json};

use super::{ApiResponse, ApiServer, Outcome};
use crate::{
    decode, encode,
    filter::Filter,
    negotiate::{Format, Representation, Shape},
    options::{ListOptions, VersionMatch},
    present,
    registry::ResourceDef,
    request::{ApiRequest, Target},
    status::ApiError,
    store::Record,
    tables::Printer,
};

/// Where a list goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Continue {
    /// The revision of all pages; none reads the present.
    revision: Option<u64>,
    /// The first key, below the prefix of the list.
    start: String,
}

// === impl Continue ===

impl Continue {
    fn parse(token: &str) -> Result<Self, ApiError> {
        let invalid =
            |why: &str| ApiError::bad_request(format!("invalid continue token: continue key is not valid: {why}"));
        let text = decode_base64(token).map_err(|at| invalid(&format!("illegal base64 data at input byte {at}")))?;
        let fields = decode::json(&text).map_err(|why| invalid(&why))?;
        let fields = Fields::read(&fields).map_err(|why| invalid(&why))?;
        if fields.version != "meta.k8s.io/v1" {
            return Err(invalid(&format!("server does not recognize this encoded version {}", fields.version)));
        }
        if fields.revision == 0 {
            return Err(invalid("incorrect encoded start resourceVersion (version meta.k8s.io/v1)"));
        }
        let start = fields.start;
        if start.is_empty() {
            return Err(invalid("encoded start key empty (version meta.k8s.io/v1)"));
        }
        // A key below the prefix of the list, and no way out of it.
        let below = start.strip_prefix('/').unwrap_or(start);
        let is_clean = below.is_empty() || below.split('/').all(|step| !matches!(step, "" | "." | ".."));
        if !is_clean {
            return Err(invalid(start));
        }
        Ok(Self { revision: u64::try_from(fields.revision).ok(), start: below.to_owned() })
    }

    fn encode(&self) -> String {
        let revision = self.revision.map_or(-1, |revision| i64::try_from(revision).unwrap_or(i64::MAX));
        let token = json!({"v": "meta.k8s.io/v1", "rv": revision, "start": self.start});
        URL_SAFE_NO_PAD.encode(token.to_string())
    }
}

/// The fields of a token as Go's struct holds them: what is left out is zero, and what is of another type is refused.
struct Fields<'a> {
    version: &'a str,
    revision: i64,
    start: &'a str,
}

impl<'a> Fields<'a> {
    fn read(token: &'a Value) -> Result<Self, String> {
        let wrong = |value: &Value, place: &str| {
            format!("json: cannot unmarshal {} into Go {place}", go_text::json_type(value))
        };
        let fields: &'a Map<String, Value> = match token {
            Value::Object(fields) => fields,
            Value::Null => return Ok(Self { version: "", revision: 0, start: "" }),
            other => return Err(wrong(other, "value of type storage.continueToken")),
        };
        // Go matches the names of fields without regard to their case.
        let field = |name: &str| {
            let alike = || fields.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value);
            fields.get(name).or_else(alike).filter(|value| !value.is_null())
        };
        let text = |name: &str| match field(name) {
            None => Ok(""),
            Some(Value::String(text)) => Ok(text.as_str()),
            Some(other) => Err(wrong(other, &format!("struct field continueToken.{name} of type string"))),
        };
        let revision = match field("rv") {
            None => 0,
            Some(Value::Number(number)) => number.as_i64().ok_or_else(|| {
                format!("json: cannot unmarshal number {number} into Go struct field continueToken.rv of type int64")
            })?,
            Some(other) => return Err(wrong(other, "struct field continueToken.rv of type int64")),
        };
        Ok(Self { version: text("v")?, revision, start: text("start")? })
    }
}

/// Reads base64 of URLs without padding; the error is the place at which Go gives up. Ends of lines are passed over.
fn decode_base64(text: &str) -> Result<Vec<u8>, usize> {
    let is_passed_over = |byte: &u8| matches!(byte, b'\n' | b'\r');
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if let Some(at) = text.bytes().position(|byte| !is_digit(byte) && !is_passed_over(&byte)) {
        return Err(at);
    }
    let digits: Vec<u8> = text.bytes().filter(|byte| !is_passed_over(byte)).collect();
    if digits.len() % 4 == 1 {
        return Err(text.len() - 1);
    }
    LENIENT.decode(digits).map_err(|_| text.len())
}

/// Go takes digits whose last bits are not zero.
const LENIENT: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, NO_PAD.with_decode_allow_trailing_bits(true));

/// The selected page of a list.
pub(super) struct Page {
    pub(super) records: Vec<Arc<Record>>,
    /// The key of each record.
    pub(super) keys: Vec<Arc<str>>,
    revision: u64,
    /// Token of the next page and, where it is known, how many objects remain.
    next: Option<(String, Option<usize>)>,
}

// === impl Page ===

impl Page {
    /// Says in the metadata of a list where it goes on.
    pub(super) fn add_next(&self, list: &mut Map<String, Value>) {
        if let Some((token, remaining)) = &self.next {
            list.insert("continue".to_owned(), json!(token));
            if let Some(remaining) = remaining {
                list.insert("remainingItemCount".to_owned(), json!(remaining));
            }
        }
    }
}

impl ApiServer {
    pub(super) fn list(
        &mut self,
        request: &ApiRequest,
        target: &Target,
        definition: &Arc<ResourceDef>,
        options: &ListOptions,
        representation: Representation,
    ) -> Result<Outcome, ApiError> {
        let filter = Filter::new(definition, target, options)?;
        let page = self.page(definition, &filter, &definition.key_prefix(&target.namespace), options)?;
        if let Some(conversion) = super::convert::of_records(request, definition, &page.records) {
            return Ok(conversion);
        }
        let mut list = Map::new();
        list.insert("resourceVersion".to_owned(), json!(page.revision.to_string()));
        if definition.custom && representation.shape == Shape::Object {
            list.insert("continue".to_owned(), json!(""));
        }
        page.add_next(&mut list);
        let list = Value::Object(list);
        if representation == Representation::default() {
            return Ok(Outcome::Done(ApiResponse::json(200, list_bytes(definition, &page.records, &list))));
        }
        let objects: Vec<Value> = page.records.iter().map(|record| encode::value(definition, record)).collect();
        let shaped = match representation.shape {
            Shape::Object => {
                let text = list_bytes(definition, &page.records, &list);
                serde_json::from_slice(&text).unwrap_or_default()
            }
            Shape::MetadataList(version) => present::partial_metadata_list(&objects, &list, version),
            Shape::Metadata(_) => return Err(present::a_list(definition)),
            Shape::Table(version) => {
                let include = present::Include::read(request)?;
                Printer::new(definition, version, include, self.environment.now()).table(objects, &list, true)
            }
        };
        let format = representation.format;
        debug_assert!(matches!(format, Format::Json | Format::Yaml));
        Ok(Outcome::Done(ApiResponse::value(200, &shaped, format)))
    }

    /// The objects that a list or deletecollection is about.
    pub(super) fn page(
        &self,
        definition: &ResourceDef,
        filter: &Filter,
        listed_prefix: &str,
        options: &ListOptions,
    ) -> Result<Page, ApiError> {
        let current = self.store.shown();
        let mut limit = usize::try_from(options.limit).ok().filter(|limit| *limit > 0);
        let mut revision = current;
        let mut start = String::new();
        if options.continue_token.is_empty() {
            if let Some(asked) = asked_version(&options.resource_version)? {
                if asked == 0 {
                    // Any state will do; the real server answers from its cache, which does not page.
                    limit = None;
                } else {
                    let exact = options.version_match == Some(VersionMatch::Exact)
                        || (options.version_match.is_none() && limit.is_some());
                    if asked > current {
                        return Err(too_large(asked, current));
                    }
                    if exact {
                        revision = asked;
                    }
                }
            }
        } else {
            let token = Continue::parse(&options.continue_token)?;
            match asked_version(&options.resource_version)? {
                None => {}
                Some(0) => limit = None,
                Some(_) => {
                    let why = "specifying resource version is not allowed when using continue";
                    return Err(ApiError::bad_request(why));
                }
            }
            start = format!("{listed_prefix}{}", token.start);
            revision = token.revision.unwrap_or(current);
        }
        let collection = self.store.collection(definition.collection);
        if revision > current {
            return Err(too_large(revision, current));
        }
        let then = collection.at(revision).map_err(|_| {
            if options.continue_token.is_empty() {
                return ApiError::expired("The resourceVersion for the provided list is too old.");
            }
            let start = start.strip_prefix(listed_prefix).unwrap_or_default().to_owned();
            ApiError::expired(CONTINUE_EXPIRED).with_continue(Continue { revision: None, start }.encode())
        })?;
        Ok(cut(then.range(&filter.prefix, &start), filter, listed_prefix, limit, revision))
    }
}

const CONTINUE_EXPIRED: &str = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

fn cut<'a>(
    objects: impl Iterator<Item = (&'a Arc<str>, &'a Arc<Record>)>,
    filter: &Filter,
    listed_prefix: &str,
    limit: Option<usize>,
    revision: u64,
) -> Page {
    let (mut records, mut keys, mut next) = (Vec::new(), Vec::new(), None);
    let mut objects = objects.into_iter();
    while let Some((key, record)) = objects.next() {
        if !filter.matches(key, record) {
            continue;
        }
        records.push(Arc::clone(record));
        keys.push(Arc::clone(key));
        if limit == Some(records.len()) {
            // With a selector the real server knows neither how many of the rest match, nor whether any does.
            let remaining = objects.count();
            let start = format!("{}\0", key.strip_prefix(listed_prefix).unwrap_or(key));
            let token = || Continue { revision: Some(revision), start }.encode();
            next = (remaining > 0).then(|| (token(), filter.is_plain().then_some(remaining)));
            break;
        }
    }
    Page { records, keys, revision, next }
}

/// The text of a list.
pub(super) fn list_bytes(definition: &ResourceDef, records: &[Arc<Record>], list: &Value) -> Vec<u8> {
    let size: usize = records.iter().map(|record| record.tail().len() + 64).sum();
    let mut out = Vec::with_capacity(size + 256);
    let kind = json!(definition.list_kind);
    let api_version = json!(definition.api_version());
    out.extend_from_slice(
        format!(r#"{{"kind":{kind},"apiVersion":{api_version},"metadata":{list},"items":["#).as_bytes(),
    );
    let head = encode::head(definition);
    for (index, record) in records.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        encode::append_item(&mut out, definition, &head, record);
    }
    out.extend_from_slice(b"]}");
    out
}

fn asked_version(text: &str) -> Result<Option<u64>, ApiError> {
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| invalid_version(text))
}

/// 400: not a revision.
pub(super) fn invalid_version(text: &str) -> ApiError {
    ApiError::bad_request(format!("invalid resource version: {}", version_error(text)))
}

/// What is wrong with a revision, as Go words it.
pub(super) fn version_error(text: &str) -> String {
    let why = if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        "value out of range"
    } else {
        "invalid syntax"
    };
    format!("resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: {why}")
}

/// 504: the revision does not exist yet.
pub(super) fn too_large(asked: u64, current: u64) -> ApiError {
    let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
    let mut error = ApiError::new(504, "Timeout", message);
    error.detail("causes", json!([{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]));
    error.detail("retryAfterSeconds", json!(1));
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_garbage_token_is_refused_in_the_words_of_go() {
        let token = |text: &str| URL_SAFE_NO_PAD.encode(text);
        let refused = |token: &str| {
            let error = Continue::parse(token).unwrap_err();
            error.message().strip_prefix("invalid continue token: continue key is not valid: ").unwrap().to_owned()
        };
        let of_json = |text: &str| refused(&token(text));
        assert_eq!(refused("not base64!"), "illegal base64 data at input byte 3");
        assert_eq!(refused("e30="), "illegal base64 data at input byte 3");
        assert_eq!(refused("abcde"), "illegal base64 data at input byte 4");
        assert_eq!(of_json(""), "unexpected end of JSON input");
        assert_eq!(of_json("[]"), "json: cannot unmarshal array into Go value of type storage.continueToken");
        assert_eq!(of_json("{}"), "server does not recognize this encoded version ");
        assert_eq!(of_json("null"), "server does not recognize this encoded version ");
        assert_eq!(
            of_json(r#"{"v":1}"#),
            "json: cannot unmarshal number into Go struct field continueToken.v of type string"
        );
        let zero = "incorrect encoded start resourceVersion (version meta.k8s.io/v1)";
        assert_eq!(of_json(r#"{"v":"meta.k8s.io/v1","start":"a"}"#), zero);
        let of_rv = |rv: &str| of_json(&format!(r#"{{"v":"meta.k8s.io/v1","rv":{rv},"start":"a"}}"#));
        let field = "into Go struct field continueToken.rv of type int64";
        assert_eq!(of_rv("1.5"), format!("json: cannot unmarshal number 1.5 {field}"));
        assert_eq!(of_rv("\"1\""), format!("json: cannot unmarshal string {field}"));
        assert_eq!(of_json(r#"{"v":"meta.k8s.io/v1","rv":1}"#), "encoded start key empty (version meta.k8s.io/v1)");
        for way_out in ["../a", "a//b", "a/", "./a"] {
            let text = json!({"v": "meta.k8s.io/v1", "rv": 1, "start": way_out}).to_string();
            assert_eq!(of_json(&text), way_out);
        }
        assert_eq!(Continue::parse(&token(r#"{"V":"meta.k8s.io/v1","rv":-1,"start":"/a"}"#)).unwrap().start, "a");
    }
}
