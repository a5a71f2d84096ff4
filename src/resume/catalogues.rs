//! Catalogue versions, parsed once. A version never changes, so keeping it is no caching of authority: which version
//! is current is asked each time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::catalogue::Catalogue;
use crate::gate::Catalogued;
use crate::store::{CatalogueVersion, ClaimScope, Store, StoreError};

/// The newest versions that were used, parsed.
#[derive(Default)]
pub struct Catalogues(Mutex<HashMap<i64, Arc<Catalogue>>>);

/// How many parsed versions are kept.
const KEPT: usize = 8;

impl Catalogues {
    /// The current version, as the store has it now.
    ///
    /// # Errors
    /// The store could not be read, or holds a version that this build cannot read.
    pub async fn current(&self, store: &dyn Store) -> Result<Catalogued, StoreError> {
        let Some(version) = store.current_version().await? else {
            return Ok(Catalogued::none());
        };
        match self.known(version) {
            Some(known) => Ok(known),
            None => self.parsed(version, store.catalogue(version).await?),
        }
    }

    /// The current version, as the claim sees it.
    ///
    /// # Errors
    /// As [`Catalogues::current`].
    pub async fn at_claim(&self, scope: &mut dyn ClaimScope) -> Result<Catalogued, StoreError> {
        let Some(version) = scope.current_version().await? else {
            return Ok(Catalogued::none());
        };
        match self.known(version) {
            Some(known) => Ok(known),
            None => self.parsed(version, scope.catalogue(version).await?),
        }
    }

    fn known(&self, version: i64) -> Option<Catalogued> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(&version).map(|catalogue| Catalogued {
            version,
            catalogue: Arc::clone(catalogue),
        })
    }

    fn parsed(&self, version: i64, row: Option<CatalogueVersion>) -> Result<Catalogued, StoreError> {
        let unreadable = |problem: String| StoreError::CorruptRow {
            table: "catalogue_versions",
            id: version.to_string(),
            column: "source",
            problem,
        };
        let row = row.ok_or_else(|| unreadable("is missing".to_owned()))?;
        let catalogue = Catalogue::parse(&row.source).map_err(|problems| {
            unreadable(format!("is no catalogue that this build can read: {problems}"))
        })?;
        let catalogue = Arc::new(catalogue);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT {
            let oldest = kept.keys().min().copied();
            oldest.and_then(|oldest| kept.remove(&oldest));
        }
        kept.insert(version, Arc::clone(&catalogue));
        Ok(Catalogued { version, catalogue })
    }
}
