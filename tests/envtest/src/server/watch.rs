//! Watch: a cursor into a kind's log. The caller polls; nothing is queued per watcher.

use std::{collections::VecDeque, sync::Arc};

use bytes::Bytes;
use serde_json::{Value, json};

use super::{ApiResponse, ApiServer, Outcome};
use crate::{
    conversion::{ConversionWebhook, Converted},
    encode,
    filter::Filter,
    negotiate::{Representation, Shape},
    options::ListOptions,
    present,
    registry::ResourceDef,
    request::{ApiRequest, Target},
    status::ApiError,
    store::{ChangeKind, CollectionId, Record},
    tables::Printer,
};

/// An open watch.
#[derive(Debug)]
pub struct Watch {
    definition: Arc<ResourceDef>,
    filter: Filter,
    representation: Representation,
    include: present::Include,
    head: String,
    /// Everything up to this revision has been sent.
    cursor: u64,
    /// Objects that were there when the watch began.
    initial: VecDeque<Arc<Record>>,
    /// Events of which the first waits for a conversion webhook.
    waiting: VecDeque<(ChangeKind, Arc<Record>)>,
    /// Whether the end of the initial objects is still to be marked.
    marks_initial_end: bool,
    sends_bookmarks: bool,
    sent_columns: bool,
    timeout_seconds: Option<u64>,
    /// Texts of `Warning` headers.
    pub(super) warnings: Vec<String>,
    /// Why the watch is to end.
    failure: Option<ApiError>,
    /// Set when no event can follow.
    ended: bool,
}

/// One line of a watch stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// JSON text with its newline; shared by the watchers of an object.
    pub text: Bytes,
}

impl Frame {
    /// The line that ends a watch with a failure.
    pub fn error(error: &ApiError) -> Self {
        line(r#"{"type":"ERROR","object":"#, &error.to_status())
    }
}

impl Watch {
    /// The collection whose changes the watch waits for.
    pub fn collection(&self) -> CollectionId {
        self.definition.collection
    }

    /// Seconds after which the stream ends, when the client asked for an end.
    pub fn timeout_seconds(&self) -> Option<u64> {
        self.timeout_seconds
    }

    /// Whether the client wants to hear of revisions without events.
    pub fn sends_bookmarks(&self) -> bool {
        self.sends_bookmarks
    }

    /// Whether no event can follow.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Texts of `Warning` headers.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// What a conversion webhook must be asked before the next frame.
    pub fn conversion(&self) -> Option<(Arc<ConversionWebhook>, Value)> {
        let (_, record) = self.waiting.front()?;
        let webhook = self.definition.conversion.as_ref().filter(|_| self.definition.lacks_conversion(record))?;
        Some((Arc::clone(webhook), encode::stored_value(&self.definition, record)))
    }

    /// Goes on with what the webhook has answered to [`Self::conversion`].
    pub fn converted(&mut self, answer: Result<Value, ApiError>) {
        let Some((webhook, (_, record))) = self.definition.conversion.as_ref().zip(self.waiting.front()) else {
            return;
        };
        match answer {
            Ok(mut object) => {
                webhook.settle_converted(&mut object);
                let mut converted = Converted::default();
                converted.extend([(record.revision, object)]);
                self.definition = super::convert::seeing(Arc::clone(&self.definition), converted);
            }
            Err(error) => self.failure = Some(error),
        }
    }

    /// Which objects are watched.
    pub(crate) fn filter(&self) -> &Filter {
        &self.filter
    }

    /// Whether everything up to `revision` has been sent.
    pub(crate) fn is_at(&self, revision: u64) -> bool {
        self.cursor >= revision && self.initial.is_empty() && self.waiting.is_empty()
    }

    /// Passes over changes up to `revision`, none of which concerns this watch.
    pub(crate) fn pass_over(&mut self, revision: u64) {
        self.cursor = self.cursor.max(revision);
    }

    /// The kind that is watched.
    pub fn definition(&self) -> &Arc<ResourceDef> {
        &self.definition
    }
}

impl ApiServer {
    pub(super) fn open_watch(
        &mut self,
        request: &ApiRequest,
        target: &Target,
        definition: Arc<ResourceDef>,
        options: &ListOptions,
        representation: Representation,
    ) -> Result<Outcome, ApiError> {
        let filter = Filter::new(&definition, target, options)?;
        let asked = match options.resource_version.as_str() {
            "" => None,
            text => Some(text.parse::<u64>().map_err(|_| ApiError::unclassified(super::list::version_error(text)))?),
        };
        let from_state = match options.send_initial_events {
            Some(wanted) => wanted,
            None => asked.is_none_or(|asked| asked == 0),
        };
        let now = self.store.shown();
        let collection = self.store.view(definition.collection);
        let mut initial = VecDeque::new();
        let mut cursor = now;
        if from_state {
            let objects = collection.range(&filter.prefix, "").filter(|(key, record)| filter.matches(key, record));
            initial.extend(objects.map(|(_, record)| Arc::clone(record)));
        } else if let Some(asked) = asked.filter(|asked| *asked != 0) {
            cursor = asked;
        }
        let watch = Watch {
            head: encode::head(&definition),
            definition,
            filter,
            representation,
            include: present::Include::read(request)?,
            cursor,
            initial,
            waiting: VecDeque::new(),
            marks_initial_end: options.send_initial_events == Some(true) && options.bookmarks,
            sends_bookmarks: options.bookmarks,
            sent_columns: false,
            timeout_seconds: options.timeout_seconds.filter(|seconds| *seconds > 0),
            warnings: Vec::new(),
            failure: None,
            ended: false,
        };
        Ok(Outcome::Watch(Box::new(watch)))
    }

    /// The next frames, at most about `limit`; none when nothing happened.
    pub fn poll_watch(&mut self, watch: &mut Watch, limit: usize) -> Vec<Frame> {
        let mut frames = Vec::new();
        if watch.ended {
            return frames;
        }
        if let Some(failure) = watch.failure.take() {
            frames.push(Frame::error(&failure));
            watch.ended = true;
            return frames;
        }
        self.drain(watch, &mut frames);
        while frames.len() < limit
            && watch.waiting.is_empty()
            && let Some(record) = watch.initial.pop_front()
        {
            watch.waiting.push_back((ChangeKind::Added, record));
            self.drain(watch, &mut frames);
        }
        if !watch.waiting.is_empty() {
            return frames;
        }
        if watch.initial.is_empty() && watch.marks_initial_end && frames.len() < limit {
            watch.marks_initial_end = false;
            frames.push(self.bookmark_frame(watch, true));
        }
        if !watch.initial.is_empty() || frames.len() >= limit {
            return frames;
        }
        let newest = self.store.shown();
        let collection = self.store.collection(watch.definition.collection);
        let mut found: Vec<(ChangeKind, Arc<Record>)> = Vec::new();
        match collection.changes_after(watch.cursor) {
            Err(_) => {
                let gone = ApiError::expired(format!("too old resource version: {} ({newest})", watch.cursor));
                frames.push(Frame::error(&gone));
                watch.ended = true;
                return frames;
            }
            Ok(changes) => {
                let mut cursor = newest.max(watch.cursor);
                for change in changes.take_while(|change| change.revision() <= newest) {
                    if frames.len() + found.len() >= limit {
                        break;
                    }
                    cursor = change.revision();
                    if !change.key.starts_with(&watch.filter.prefix) {
                        continue;
                    }
                    let is_in = change.kind != ChangeKind::Deleted && watch.filter.matches(&change.key, &change.new);
                    let was_in = change.old.as_ref().is_some_and(|old| watch.filter.matches(&change.key, old));
                    match (was_in, is_in) {
                        (false, true) => found.push((ChangeKind::Added, Arc::clone(&change.new))),
                        (true, true) => found.push((ChangeKind::Modified, Arc::clone(&change.new))),
                        (true, false) if change.kind == ChangeKind::Deleted => {
                            found.push((ChangeKind::Deleted, Arc::clone(&change.new)));
                        }
                        (true, false) => {
                            if let Some(old) = &change.old {
                                let last = encode::at_revision(&watch.definition, old, change.revision());
                                found.push((ChangeKind::Deleted, Arc::new(last)));
                            }
                        }
                        (false, false) => {}
                    }
                }
                if frames.len() + found.len() < limit {
                    cursor = newest.max(watch.cursor);
                }
                watch.cursor = cursor;
            }
        }
        watch.waiting.extend(found);
        self.drain(watch, &mut frames);
        frames
    }

    /// Makes frames of what waits, up to the first event whose object a webhook must convert.
    fn drain(&mut self, watch: &mut Watch, frames: &mut Vec<Frame>) {
        while let Some((change, record)) =
            watch.waiting.pop_front_if(|(_, record)| !watch.definition.lacks_conversion(record))
        {
            frames.push(self.frame(watch, change, &record));
        }
    }

    /// A bookmark at the newest revision, when the watch has seen everything and wants bookmarks.
    pub fn bookmark(&mut self, watch: &mut Watch) -> Option<Frame> {
        let newest = self.store.shown();
        let changes = self.store.collection(watch.collection()).changes_after(watch.cursor);
        let is_current = changes.is_ok_and(|mut changes| changes.next().is_none_or(|next| next.revision() > newest));
        let up_to_date = watch.initial.is_empty() && watch.waiting.is_empty() && is_current;
        if !watch.sends_bookmarks || watch.ended || !up_to_date {
            return None;
        }
        watch.cursor = watch.cursor.max(newest);
        Some(self.bookmark_frame(watch, false))
    }

    fn frame(&mut self, watch: &mut Watch, change: ChangeKind, record: &Record) -> Frame {
        let definition = &watch.definition;
        match watch.representation.shape {
            Shape::Object => Frame { text: encode::event(definition, &watch.head, record, change) },
            Shape::Metadata(version) | Shape::MetadataList(version) => {
                let object = present::partial_metadata(&encode::value(definition, record), version);
                line(change.event_prefix(), &object)
            }
            Shape::Table(version) => {
                let object = encode::value(definition, record);
                let table = self.table(watch, version, watch.include, object);
                line(change.event_prefix(), &table)
            }
        }
    }

    /// An object of a watch as a table; the first one has the headings.
    fn table(&mut self, watch: &mut Watch, version: &str, include: present::Include, object: Value) -> Value {
        let list = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
        let printer = Printer::new(&watch.definition, version, include, self.environment.now());
        let table = printer.table([object], &list, !watch.sent_columns);
        watch.sent_columns = true;
        table
    }

    fn bookmark_frame(&mut self, watch: &mut Watch, ends_initial: bool) -> Frame {
        let mut object = json!({
            "kind": watch.definition.kind,
            "apiVersion": watch.definition.api_version(),
            "metadata": {"resourceVersion": watch.cursor.to_string()},
        });
        if ends_initial {
            object["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let object = match watch.representation.shape {
            Shape::Object => object,
            Shape::Metadata(version) | Shape::MetadataList(version) => present::partial_metadata(&object, version),
            Shape::Table(version) => {
                // The mark would be lost with the metadata.
                let include = match watch.include {
                    present::Include::None if ends_initial => present::Include::Metadata,
                    include => include,
                };
                self.table(watch, version, include, object)
            }
        };
        line(r#"{"type":"BOOKMARK","object":"#, &object)
    }
}

fn line(prefix: &str, object: &Value) -> Frame {
    Frame { text: Bytes::from(format!("{prefix}{object}}}\n")) }
}

/// A watch that could not be opened is answered like any request.
impl From<ApiError> for ApiResponse {
    fn from(error: ApiError) -> Self {
        Self::error(&error)
    }
}
