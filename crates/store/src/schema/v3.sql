ALTER TABLE conversations ADD COLUMN effort TEXT;
