"""All remedies of a run as one ordered plan per host: read, decided and carried out by a person."""
