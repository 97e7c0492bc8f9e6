//! The file of a data directory.

use std::sync::Arc;

use bytes::Bytes;
use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, TableDefinition};

use super::{Contents, Entry};

/// Key: collection, NUL, key. Value: `apiVersion`, NUL, revision in decimal, NUL, tail.
const OBJECTS: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("objects");
/// Key `revision`: the newest revision.
const META: TableDefinition<'static, &str, u64> = TableDefinition::new("meta");

/// How the file is opened.
pub(super) type Open = Box<dyn Fn() -> Result<Database, DatabaseError> + Send>;

/// The file; closed after a failure until it is opened again, because a database that failed once stays so.
pub(super) struct Disk {
    open: Open,
    database: Option<Database>,
}

// === impl Disk ===

impl Disk {
    /// Opens or makes the file and reads it.
    pub(super) fn open(open: Open) -> Result<(Self, Contents), redb::Error> {
        let database = open()?;
        let contents = read(&database)?;
        Ok((Self { open, database: Some(database) }, contents))
    }

    /// Writes a group: all of it, or nothing.
    pub(super) fn write(&mut self, entries: &[Entry]) -> Result<(), redb::Error> {
        let database = match self.database.take() {
            Some(database) => database,
            None => (self.open)()?,
        };
        write(&database, entries)?;
        self.database = Some(database);
        Ok(())
    }

    /// Opens the file anew and puts it back to what memory holds: a failed sync leaves open what came to the disk.
    pub(super) fn reopen(&mut self, undone: &[Entry]) -> Result<(), redb::Error> {
        self.database = None;
        self.write(undone)
    }
}

fn write(database: &Database, entries: &[Entry]) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        let mut objects = transaction.open_table(OBJECTS)?;
        let mut meta = transaction.open_table(META)?;
        for entry in entries {
            let key = format!("{}\0{}", entry.collection, entry.key);
            if let Some((version, tail)) = &entry.object {
                let mut value = format!("{version}\0{}\0", entry.revision).into_bytes();
                value.extend_from_slice(tail);
                objects.insert(key.as_str(), value.as_slice())?;
            } else {
                objects.remove(key.as_str())?;
            }
        }
        let known = meta.get("revision")?.map(|revision| revision.value());
        if let Some(newest) = entries.iter().map(|entry| entry.revision).max().max(known) {
            meta.insert("revision", newest)?;
        }
    }
    transaction.commit()?;
    Ok(())
}

fn read(database: &Database) -> Result<Contents, redb::Error> {
    let mut contents = Contents::default();
    // The tables exist from the first start on.
    write(database, &[])?;
    let transaction = database.begin_read()?;
    if let Some(revision) = transaction.open_table(META)?.get("revision")? {
        contents.revision = revision.value();
    }
    for row in transaction.open_table(OBJECTS)?.iter()? {
        let (key, value) = row?;
        let mut parts = value.value().splitn(3, |byte| *byte == 0);
        let text = |part: Option<&[u8]>| String::from_utf8_lossy(part.unwrap_or_default()).into_owned();
        let (version, revision) = (text(parts.next()), text(parts.next()));
        let tail = Bytes::copy_from_slice(parts.next().unwrap_or_default());
        let Some((collection, key)) = key.value().split_once('\0') else { continue };
        contents.entries.push(Entry {
            collection: collection.to_owned(),
            key: key.to_owned(),
            revision: revision.parse().unwrap_or_default(),
            object: Some((Arc::from(version), tail)),
        });
    }
    Ok(contents)
}
