//! Exports for all state of a module, so that an instance can be reset.

use wasm_encoder::{ExportKind, ExportSection, Module, RawSection};
use wasmparser::{BinaryReaderError, ExternalKind, Operator, Parser, Payload};

/// Prefix of the added exports of memories.
pub(crate) const MEMORY: &str = "percid-state.memory.";

/// Prefix of the added exports of globals.
pub(crate) const GLOBAL: &str = "percid-state.global.";

/// A module whose state is exported.
pub(crate) struct Exposed {
    pub(crate) bytes: Vec<u8>,
    /// Number of memories.
    pub(crate) memories: u32,
    /// Indices of the globals that may change.
    pub(crate) globals: Vec<u32>,
    /// `true` if the module has state that no export reaches: tables that may change, or segments
    /// that it may drop.
    pub(crate) has_hidden_state: bool,
}

/// Adds the exports to a valid module without imported memories or globals.
pub(crate) fn exposed(module: &[u8]) -> Result<Exposed, BinaryReaderError> {
    let mut exposed =
        Exposed { bytes: Vec::new(), memories: 0, globals: Vec::new(), has_hidden_state: false };
    let mut copy = Module::new();
    for payload in Parser::new(0).parse_all(module) {
        let payload = payload?;
        exposed.read(&payload)?;
        if let Payload::ExportSection(own) = payload {
            copy.section(&exposed.exports(own)?);
        } else if let Some((id, range)) = payload.as_section() {
            copy.section(&RawSection { id, data: &module[range] });
        }
    }
    exposed.bytes = copy.finish();
    Ok(exposed)
}

impl Exposed {
    /// Records the state that a part of the module declares or uses.
    fn read(&mut self, payload: &Payload<'_>) -> Result<(), BinaryReaderError> {
        match payload {
            Payload::MemorySection(memories) => self.memories = memories.count(),
            Payload::GlobalSection(globals) => {
                for (index, global) in (0..).zip(globals.clone()) {
                    if global?.ty.mutable {
                        self.globals.push(index);
                    }
                }
            }
            Payload::CodeSectionEntry(body) => {
                for operator in body.get_operators_reader()? {
                    self.has_hidden_state |= changes_hidden_state(&operator?);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn exports(
        &self,
        own: wasmparser::ExportSectionReader<'_>,
    ) -> Result<ExportSection, BinaryReaderError> {
        let mut exports = ExportSection::new();
        for export in own {
            let export = export?;
            exports.export(export.name, kind(export.kind), export.index);
        }
        for index in 0..self.memories {
            exports.export(&format!("{MEMORY}{index}"), ExportKind::Memory, index);
        }
        for &index in &self.globals {
            exports.export(&format!("{GLOBAL}{index}"), ExportKind::Global, index);
        }
        Ok(exports)
    }
}

fn changes_hidden_state(operator: &Operator<'_>) -> bool {
    matches!(
        operator,
        Operator::TableSet { .. }
            | Operator::TableGrow { .. }
            | Operator::TableFill { .. }
            | Operator::TableCopy { .. }
            | Operator::TableInit { .. }
            | Operator::ElemDrop { .. }
            | Operator::DataDrop { .. }
    )
}

fn kind(kind: ExternalKind) -> ExportKind {
    match kind {
        ExternalKind::Func => ExportKind::Func,
        ExternalKind::Table => ExportKind::Table,
        ExternalKind::Memory => ExportKind::Memory,
        ExternalKind::Global => ExportKind::Global,
        ExternalKind::Tag => ExportKind::Tag,
    }
}
