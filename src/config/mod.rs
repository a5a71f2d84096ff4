//! The settings of a process: a TOML file, and over it `COUNTERSIGN_…` variables.
//!
//! Every setting is a row of one table ([`SETTINGS`]), from which the file's keys, the variables' names and the
//! defaults follow. Whatever is in neither is refused, and so is a combination that could not work: the process
//! does not start, and the message names the setting. The room reads the settings' file and the files that hold
//! secrets; it never looks at the process's environment itself, which the caller hands in, and it never shows a
//! secret. What is declared for agents is not here but in the catalogue.

mod addresses;
mod build;
mod roles;
mod secret;
mod sections;
mod settings;
mod source;
#[cfg(test)]
mod tests;
mod value;

use std::path::{Path, PathBuf};

pub use roles::Role;
pub use secret::Secret;
pub use sections::{
    BrokerAddress, BrokerSettings, DatabaseKind, DatabaseSettings, HttpSettings, LeaseSettings,
    LimitSettings, LogFormat, LogSettings, ReaperSettings, RelaySettings, Settings, WorkerSettings,
};
pub use settings::{SETTINGS, SettingRow, VARIABLE_OF_THE_FILE};

use crate::declaration::Problems;

/// Why the process does not start.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The settings' file, or one that a setting names, cannot be read.
    #[error("{what} cannot be read from {}", path.display())]
    Unreadable {
        /// `the settings`, or the key of the setting.
        what: String,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// Settings are wrong, each named.
    #[error("{}:\n{problems}", in_which(file.as_deref()))]
    Invalid {
        /// The settings' file, if there is one.
        file: Option<PathBuf>,
        /// What is wrong.
        problems: Problems,
    },
}

fn in_which(file: Option<&Path>) -> String {
    match file {
        Some(file) => format!("wrong settings in {} or in the environment", file.display()),
        None => "wrong settings in the environment".to_owned(),
    }
}

impl Settings {
    /// Reads the settings: defaults, over them the file, over it the variables. A variable that is empty counts
    /// as not set.
    ///
    /// # Errors
    ///
    /// When a file cannot be read, a setting is unknown or wrong, or settings contradict each other.
    pub fn load(
        file: Option<&Path>,
        env: impl Iterator<Item = (String, String)>,
    ) -> Result<Self, SettingsError> {
        let text = file
            .map(|path| read_text("the settings", path))
            .transpose()?
            .unwrap_or_default();
        let mut given = source::read(&text, env);
        given.host = given.host.or_else(host_name);
        build::build(given, read_text).map_err(|failed| match failed {
            build::Failed::Unreadable(error) => error,
            build::Failed::Wrong(problems) => SettingsError::Invalid {
                file: file.map(Path::to_owned),
                problems: problems.into(),
            },
        })
    }
}

/// The host's name as the kernel knows it, where there is such a file.
fn host_name() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

fn read_text(what: &str, path: &Path) -> Result<String, SettingsError> {
    std::fs::read_to_string(path).map_err(|source| SettingsError::Unreadable {
        what: what.to_owned(),
        path: path.to_owned(),
        source,
    })
}
