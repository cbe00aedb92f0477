//! The run directory: the truth about a run, which every view is made from.
//!
//! Purpose: types, writer and reader of `run.json`, `events.jsonl`, histograms, series and
//! `result.json`. Invariant: what a newer program writes has its version, and older versions stay
//! readable. Safe to share: nothing in it is secret. It computes nothing but rates of samples that
//! are watched, and prints nothing.

mod bound;
mod checked;
mod columns;
mod disk_document;
mod document;
mod engine_document;
mod error;
mod event;
mod expected_effect;
mod figures;
mod file_io;
mod fio_document;
mod histograms;
pub mod host;
pub mod layout;
mod lines;
mod managed_service;
mod manifest;
mod prepare_document;
mod queue_change;
mod reader;
mod scrub;
mod series;
mod server_summary_document;
mod simulate_document;
mod simulate_flush_document;
mod study_diff_document;
mod study_document;
mod transaction_course;
mod transaction_document;
mod unavailable;
mod unknown;
mod watch_document;
mod watched;
mod writer;

pub use bound::{BoundResource, Resource, ResourceUse, TransactionBound};
pub use disk_document::{
    DiskFaultDocument, DiskListDocument, DiskRefusal, DiskRow, DiskStartDocument, DiskStopDocument,
};
pub use document::{
    Advice, Curve, CurvePoint, Finding, FindingKind, IoDocument, IoOpDocument, Loss, ProbeDocument,
    ProbeHost, RedoRow, Risk, Rung, Verification,
};
pub use engine_document::{
    CrashTestDocument, EngineCheckDocument, EngineCounter, EngineProblem, EngineRecovery,
    EngineStatsDocument, EngineTable,
};
pub use error::{RunReadError, RunWriteError};
pub use event::{
    ChangeRecord, DevicePause, Event, LatencyTrace, PointProfile, PooledLatencies, PooledLatency,
    Replicate,
};
pub use expected_effect::{ExpectedEffect, ExpectedFigure};
pub use figures::{
    Cpu, IoErrorCount, OpFigures, ReaderFigures, SecondDatabase, Series, StreamFigures,
    TransactionFigures,
};
pub use file_io::{FileClass, FileClassIo, FileIo, FileIoSource};
pub use fio_document::{FioDocument, FioJobDocument, FioWaveDocument};
pub use iostrata_stats::AxisKind;
pub use managed_service::ManagedService;
pub use manifest::{FormatVersion, Manifest, RunKind};
pub use prepare_document::{CheckDocument, ConditionDocument, PrepareDocument, TableCountDocument};
pub use queue_change::{DeviceChange, DeviceMetric, QueueChange};
pub use reader::{FoundRun, RunReader, RunResult};
pub use scrub::scrubbed;
pub use server_summary_document::{
    ConnectionSummary, PoolSummary, RedoSummary, ServerSummaryDocument, SettingOrigin,
    SettingSource,
};
pub use simulate_document::{
    KernelThen, QueueComparison, QueueDevice, QueueDocument, QueuePoint, QueueQuestion,
    QueueReader, QueueReplicate, QueueRun, QueueThenRow,
};
pub use simulate_flush_document::{
    FlushAssumption, FlushDocument, FlushEvenness, FlushFigures, FlushPolicyRun, FlushRecording,
    FlushSeries, FlushTurn,
};
pub use study_diff_document::StudyDiffDocument;
pub use study_document::{
    AnswerEffect, AnswerFigure, AnswerSplit, StudyAnswer, StudyAxis, StudyBacklog, StudyDocument,
    StudyEffect, StudyInteraction, StudyOp, StudyPoint, StudyResponse, ThenRow,
};
pub use transaction_course::{
    DatasetGrowth, InsertFigures, InsertGrowth, LatencyTarget, RateBound, SamplerCost, StallCause,
    TargetCourse, TransactionStall,
};
pub use transaction_document::{
    DriverCost, StudyTransactions, TransactionDocument, TransactionDurability, TransactionLevel,
    TransactionSeries, TransactionTarget,
};
pub use unavailable::{Unavailable, UnavailableCause};
pub use unknown::{Refusal, Unknown, refusal, share_refusal};
pub use watch_document::{StallCommand, TunedFigure, TunedSetting, WatchDocument, WatchTarget};
pub use watched::{
    Blocker, CHARTS, FIGURES, Figure, FigureChart, FigureColumn, FigureKind, FigureMetric,
    FigureRow, FileCounts, FileOpCounts, FileTable, LockKind, LockWait, OldestTransaction,
    SampleField, SampleSpan, SessionState, SessionWaits, StallSnapshot, StatementDigest,
    TargetSample, WatchDevice, WatchSample,
};
pub use writer::RunWriter;
