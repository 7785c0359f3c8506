//! Documents on shelves: one row each, written under a condition that is checked in the same transaction.

use super::batch::Batch;
use super::connect::PROJECT;
use super::read::Reader;
use crate::error::StoreError;
use crate::shelf::{Expect, Shelf};
use serde_json::Value;

impl Batch<'_> {
    /// Writes or removes a document if the condition holds.
    pub(super) fn place(
        &mut self,
        shelf: Shelf,
        key: &str,
        value: Option<&Value>,
        expect: &Expect,
    ) -> Result<bool, StoreError> {
        if !self.holds(shelf, key, expect)? {
            return Ok(false);
        }
        match value {
            Some(value) => self.execute(
                "INSERT INTO documents (project, shelf, key, value) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (project, shelf, key) DO UPDATE SET value = ?4",
                (PROJECT, shelf.as_str(), key, value.to_string()),
            )?,
            None => self.execute(
                "DELETE FROM documents WHERE project = ?1 AND shelf = ?2 AND key = ?3",
                (PROJECT, shelf.as_str(), key),
            )?,
        };
        Ok(true)
    }

    fn holds(&self, shelf: Shelf, key: &str, expect: &Expect) -> Result<bool, StoreError> {
        let document = || -> Result<Option<String>, StoreError> {
            self.first(
                "SELECT value FROM documents WHERE project = ?1 AND shelf = ?2 AND key = ?3",
                (PROJECT, shelf.as_str(), key),
                |row| row.get(0),
            )
        };
        Ok(match expect {
            Expect::Anything => true,
            Expect::Absent => document()?.is_none(),
            Expect::Value(value) => {
                document()?.and_then(|text| serde_json::from_str::<Value>(&text).ok()).as_ref() == Some(value)
            }
            Expect::Lease { name, epoch } => self
                .first(
                    "SELECT 1 FROM leases WHERE project = ?1 AND name = ?2 AND epoch = ?3 AND expires_at > ?4",
                    (PROJECT, name, epoch.cast_signed(), self.now.as_millis()),
                    |row| row.get::<_, i64>(0),
                )?
                .is_some(),
        })
    }
}

impl Reader<'_> {
    /// One document.
    pub(super) fn document(&self, shelf: Shelf, key: &str) -> Result<Option<Value>, StoreError> {
        let sql = "SELECT key, value FROM documents WHERE project = ?1 AND shelf = ?2 AND key = ?3";
        Ok(self.document_rows(sql, shelf, key)?.pop().map(|(_, value)| value))
    }

    /// The documents whose keys begin so, by key.
    pub(super) fn documents(&self, shelf: Shelf, prefix: &str) -> Result<Vec<(String, Value)>, StoreError> {
        let sql = "SELECT key, value FROM documents WHERE project = ?1 AND shelf = ?2
                   AND key >= ?3 AND substr(key, 1, length(?3)) = ?3 ORDER BY key";
        self.document_rows(sql, shelf, prefix)
    }

    fn document_rows(&self, sql: &str, shelf: Shelf, key: &str) -> Result<Vec<(String, Value)>, StoreError> {
        let rows = self.rows(sql, &[&shelf.as_str(), &key], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
        })?;
        rows.into_iter()
            .map(|(key, text)| match serde_json::from_str(&text) {
                Ok(value) => Ok((key, value)),
                Err(error) => Err(StoreError::Damaged {
                    place: format!("document {} {key}", shelf.as_str()),
                    cause: error.to_string(),
                }),
            })
            .collect()
    }
}
