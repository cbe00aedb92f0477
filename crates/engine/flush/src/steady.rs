//! The default policy: feedback on the checkpoint age.

use crate::{Action, AdmitRule, Cause, Finished, FlushPolicy, FlushSample};

/// Holds the oldest change's age below the async limit.
#[derive(Clone, Debug)]
pub struct Steady {
    rule: AdmitRule,
}

impl Default for Steady {
    fn default() -> Steady {
        Steady { rule: AdmitRule::wall(u64::MAX) }
    }
}

impl FlushPolicy for Steady {
    fn next(&mut self, now: &FlushSample<'_>, _last: Finished) -> Action {
        self.rule = AdmitRule::wall(now.limits.max_age);
        if now.modified_age() > now.limits.async_age / 2 {
            let until = now.lsn;
            return Action::Flush { pages: 64, until, furious: false, cause: Cause::Adaptive };
        }
        Action::Sleep { until_us: now.now_us + 10_000 }
    }

    fn admit(&self) -> AdmitRule {
        self.rule
    }
}
