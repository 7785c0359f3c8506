//! Where questions are kept: files of a folder, or a database on a server.

use crate::calls::service;
use aop_store::{PostgresOptions, PostgresStore, Service, SqliteStore, SystemClock, TimeSource};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

#[derive(Clone)]
pub(crate) enum Place {
    Sqlite,
    /// The address of a database.
    Postgres(String),
}

impl Place {
    /// The reverse of `text`.
    pub(crate) fn parse(text: &str) -> Self {
        if text == "sqlite" { Place::Sqlite } else { Place::Postgres(text.to_owned()) }
    }

    /// As an argument.
    pub(crate) fn text(&self) -> &str {
        match self {
            Place::Sqlite => "sqlite",
            Place::Postgres(address) => address,
        }
    }

    /// As it stands in a figure.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Place::Sqlite => "sqlite",
            Place::Postgres(_) => "postgres",
        }
    }

    /// The store of a project in this folder, made when it is not there.
    pub(crate) fn open(&self, root: &Path, project: &str) -> Service {
        let dir = root.join(".aop");
        std::fs::create_dir_all(&dir).unwrap();
        match self {
            Place::Sqlite => service(Arc::new(SqliteStore::open(&dir, Arc::new(SystemClock)).unwrap())),
            Place::Postgres(address) => {
                let options = PostgresOptions::parse(address).unwrap().project(project);
                PostgresStore::create(&options).unwrap();
                service(Arc::new(PostgresStore::open(options, TimeSource::Database).unwrap()))
            }
        }
    }

    /// A command in a project's folder.
    pub(crate) fn command(&self, aop: &Path, root: &Path, project: &str) -> Command {
        let mut command = Command::new(aop);
        command.current_dir(root).stdin(Stdio::null()).stderr(Stdio::null());
        match self {
            Place::Sqlite => command.env_remove("AOP_STORE"),
            Place::Postgres(address) => command.env("AOP_STORE", format!("{address}?project={project}")),
        };
        command
    }

    /// `aop init` in a folder, made when it is not there, and nothing else: the settings are what everybody has.
    pub(crate) fn init(&self, aop: &Path, root: &Path, project: &str) {
        std::fs::create_dir_all(root).unwrap();
        let status = self.command(aop, root, project).arg("init").stdout(Stdio::null()).status();
        assert!(status.unwrap().success(), "aop init failed in {}", root.display());
    }
}
