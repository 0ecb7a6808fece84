"""Writes ETL files: for the sample trace, for tests and for measurements."""

from collector.etlwriter.items import Item
from collector.etlwriter.payloads import payload_bytes
from collector.etlwriter.records import Record, record_bytes
from collector.etlwriter.session import Compression, Session
from collector.etlwriter.writer import EtlWriter

__all__ = ["Compression", "EtlWriter", "Item", "Record", "Session", "payload_bytes", "record_bytes"]
