//! How frames come into the switch: counted, read, struck by faults, sent on their way.

use crate::counters::DropReason;
use crate::egress::{Egress, Handling};
use crate::fault::Fate;
use crate::fault_point::Passing;
use crate::forward::Forwarding;
use crate::frame::Frame;
use crate::ingress::Ingress;

impl<F: Frame> Ingress<F> {
    /// A frame arrived.
    #[inline(always)]
    pub(crate) fn receive(
        &mut self,
        now_ns: u64,
        frame: F,
        forwarding: &mut Forwarding,
        egress: &mut [Egress<F>],
    ) {
        let origin = &mut self.origin;
        origin.counters.received += 1;
        origin.counters.received_bytes += u64::from(frame.len());
        if frame.classify(&mut self.classifier).is_none() {
            return origin.counters.drops.count(DropReason::Runt, 1);
        }
        if let Some(faults) = &mut self.faults
            && !faults.spares(self.classifier.last().tag)
        {
            let looked = faults.look(self.classifier.last().tag, Handling::Routed);
            if looked != Ok(Handling::Routed) {
                return self.receive_touched(now_ns, looked, frame, forwarding, egress);
            }
        }
        forwarding.route(now_ns, origin, egress, frame, &self.classifier, Handling::Routed);
    }

    /// S-7: a frame that faults do not leave as it is.
    #[inline(never)]
    fn receive_touched(
        &mut self,
        now_ns: u64,
        looked: Result<Handling, Fate>,
        frame: F,
        forwarding: &mut Forwarding,
        egress: &mut [Egress<F>],
    ) {
        match looked {
            Ok(handling) => {
                forwarding.route(now_ns, &mut self.origin, egress, frame, &self.classifier, handling);
            }
            Err(fate) => {
                let frame = Passing { frame, seen: *self.classifier.last(), handling: Handling::Routed };
                self.receive_struck(now_ns, fate, frame, forwarding, egress);
            }
        }
    }

    /// A frame that does not simply go on.
    #[cold]
    #[inline(never)]
    fn receive_struck(
        &mut self,
        now_ns: u64,
        fate: Fate,
        frame: Passing<F>,
        forwarding: &mut Forwarding,
        egress: &mut [Egress<F>],
    ) {
        let Some(faults) = &mut self.faults else { return };
        let counters = &mut self.origin.counters;
        let passed = faults.pass(now_ns, fate, frame, &mut counters.duplicated, &mut counters.drops);
        for frame in passed.into_iter().flatten() {
            forwarding.route_passing(now_ns, &mut self.origin, egress, frame);
        }
        self.release(now_ns, forwarding, egress);
    }

    /// Lets go what a fault held back and is due.
    pub(crate) fn release(&mut self, now_ns: u64, forwarding: &mut Forwarding, egress: &mut [Egress<F>]) {
        while let Some(frame) = self.faults.as_mut().and_then(|faults| faults.due(now_ns)) {
            forwarding.route_passing(now_ns, &mut self.origin, egress, frame);
        }
    }
}
