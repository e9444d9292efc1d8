use redb::{ReadableTable as _, Table, TableDefinition, WriteTransaction};

use super::Reporter;

/// The bytes that the measurements and graphs of each reporter take, by name. Those without a reporter are in no row.
pub(super) const REPORTERS: TableDefinition<'_, &[u8], u64> = TableDefinition::new("reporters");

/// The table, while it is written.
pub(super) struct ReporterTable<'a>(Table<'a, &'static [u8], u64>);

impl<'a> ReporterTable<'a> {
    pub(super) fn open(write: &'a WriteTransaction) -> Result<Self, redb::Error> {
        Ok(Self(write.open_table(REPORTERS)?))
    }

    /// Bytes of a reporter.
    pub(super) fn bytes(&self, reporter: &Reporter) -> Result<u64, redb::Error> {
        Ok(self
            .0
            .get(reporter.name().as_bytes())?
            .map_or(0, |bytes| bytes.value()))
    }

    pub(super) fn add(
        &mut self,
        reporter: Option<&Reporter>,
        bytes: u64,
    ) -> Result<(), redb::Error> {
        let Some(reporter) = reporter else {
            return Ok(());
        };
        let sum = self.bytes(reporter)? + bytes;
        self.0.insert(reporter.name().as_bytes(), sum)?;
        Ok(())
    }

    /// Subtracts bytes. A reporter without bytes has no row.
    pub(super) fn subtract(
        &mut self,
        reporter: Option<&Reporter>,
        bytes: u64,
    ) -> Result<(), redb::Error> {
        let Some(reporter) = reporter else {
            return Ok(());
        };
        let name = reporter.name().as_bytes();
        let left = self.bytes(reporter)?.saturating_sub(bytes);
        if left == 0 {
            self.0.remove(name)?;
        } else {
            self.0.insert(name, left)?;
        }
        Ok(())
    }
}
