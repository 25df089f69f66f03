//! Looking at frames on their way in and out.

use crate::frame::FrameSink;
use crate::port::PortId;

/// Where a frame was seen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TapPoint {
    /// As it arrived: before faults, before everything.
    Arrival,
    /// As it left: after trimming, marking, the queues and the link.
    Departure,
}

/// Sees every frame of a switch, for captures. Which of them matter is its own business.
pub trait Tap<F> {
    /// Whether there is anything to be seen: a constant, so that a switch without a tap pays nothing.
    const ENABLED: bool = true;

    /// A frame at `port`, at `now_ns` of the driver's clock.
    fn frame(&mut self, now_ns: u64, port: PortId, point: TapPoint, frame: &F);
}

/// Sees nothing.
#[derive(Clone, Copy, Default, Debug)]
pub struct NoTap;

impl<F> Tap<F> for NoTap {
    const ENABLED: bool = false;

    #[inline]
    fn frame(&mut self, _: u64, _: PortId, _: TapPoint, _: &F) {}
}

/// A sink that shows frames to a tap.
pub(crate) struct TappedSink<'a, S, T> {
    pub(crate) sink: &'a mut S,
    pub(crate) tap: &'a mut T,
    pub(crate) now_ns: u64,
    pub(crate) port: PortId,
}

impl<F, S: FrameSink<F>, T: Tap<F>> FrameSink<F> for TappedSink<'_, S, T> {
    #[inline]
    fn room(&self) -> usize {
        self.sink.room()
    }

    #[inline]
    fn push(&mut self, frame: F) {
        if T::ENABLED {
            self.tap.frame(self.now_ns, self.port, TapPoint::Departure, &frame);
        }
        self.sink.push(frame);
    }
}
